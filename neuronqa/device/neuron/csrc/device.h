// The simulated device itself: how many there are, which one is current, and what waits on its streams.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <string>

namespace neuronqa {

constexpr auto kNeuron = c10::DeviceType::PrivateUse1;
constexpr int kMaxDevices = 64;

// Settings that a profile decides. Set once by `initialise`, before the first tensor.
struct Settings {
  int devices = 1;
  int64_t memory_limit = 0;  // bytes of HBM per logical device; 0: no limit
  bool contiguous_only = false;  // refuse channels_last, as TorchNeuron does
  bool narrow_int64 = false;  // operators compute int64 as int32
  bool narrow_float64 = false;  // operators compute float64 as float32
  bool fallback_on_refusal = true;  // a kernel that refuses its arguments, or fails, runs on the CPU
  bool blocking = false;  // NEURON_LAUNCH_BLOCKING: errors surface where they arise
  bool keeps_parameters = true;  // Module.to moves parameters in place
  int64_t matmul_tile = 0;  // products are summed by so many in float32; 0: as the host does
  bool function_tables = false;  // transcendental functions come from tables
  bool stochastic_rounding = false;  // NEURON_RT_STOCHASTIC_ROUNDING_EN
  uint64_t rounding_seed = 0;
};

Settings& settings();
void initialise(const Settings& chosen);

c10::DeviceIndex device_count();
c10::DeviceIndex current_device();
void set_current_device(c10::DeviceIndex index);
// The index a device argument means: -1 is the current one.
c10::DeviceIndex resolve(c10::DeviceIndex index);

// TorchNeuron keeps an asynchronous error on its stream until somebody waits for the stream.
void post_error(const std::string& message);
void raise_pending_error();

// Throws in a process that was forked after the device was initialised.
void check_not_forked();
bool in_bad_fork();

}  // namespace neuronqa
