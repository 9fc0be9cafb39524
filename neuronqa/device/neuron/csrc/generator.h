// Random numbers: a generator on the device whose draws are the CPU's, so that one seed gives one stream on both.
#pragma once

#include <ATen/core/Generator.h>

namespace neuronqa {

const at::Generator& default_generator(c10::DeviceIndex device);
at::Generator new_generator(c10::DeviceIndex device);
// The CPU generator that draws for a neuron generator.
at::Generator& host_generator(const at::Generator& generator);

}  // namespace neuronqa
