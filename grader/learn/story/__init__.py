"""`course story`: a model of many kernels that runs on the learner's own."""
