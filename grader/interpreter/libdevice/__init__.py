"""The functions of NVIDIA's libdevice."""
