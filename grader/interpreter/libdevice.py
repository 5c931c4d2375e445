"""tt.extern_elementwise: functions of NVIDIA's libdevice, by their symbols."""
