// Runs a host kernel on device tensors without copying: each argument is lent to the host and each result adopted.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>

#include "ledger.h"

namespace neuronqa {

using torch::jit::Stack;

at::Tensor host_view(const at::Tensor& device_tensor);
at::Tensor adopt_tensor(const at::Tensor& host_tensor, c10::DeviceIndex device);

constexpr uint64_t bit(c10::ScalarType dtype) {
  return uint64_t{1} << static_cast<int>(dtype);
}

// What an operator's schema says about its arguments, as far as the exchange needs it.
struct Signature {
  std::string name;
  size_t arguments = 0;
  size_t returns = 0;
  int generator_argument = -1;
  bool draws_without_generator = false;  // e.g. native_dropout: draws from the default CPU generator
  bool takes_host_tensors = false;  // e.g. index: the indices may lie on the CPU
  uint64_t written_in_place = 0;  // bit i: argument i is written, and not an `out`
  uint64_t plain = 0;  // bit i: argument i can hold neither a tensor nor a device

  bool is_plain(size_t argument) const {
    return argument < 64 && ((plain >> argument) & 1) != 0;
  }
};

// What the tensors of one call are like.
struct Census {
  uint64_t dtypes = 0;  // bits, of all but 0-d tensors if there are others
  uint64_t first_dtype = 0;
  c10::ScalarType dtype = c10::ScalarType::Undefined;  // that of the first floating-point input, else of the first
  int64_t bytes = 0;

  void count(const at::Tensor& tensor);
};

Census census_of_arguments(const Stack& stack, const Signature& signature);
Census census_of_results(const Stack& stack, const Signature& signature);
Geometry geometry_of_arguments(const Stack& stack, const Signature& signature);

class Exchange {
 public:
  explicit Exchange(const Signature& signature) : signature_(signature) {}

  // Replaces the arguments on top of the stack by host values. With `narrow`, integers and floats of 64 bits are
  // limited to what the device computes with.
  void arguments_to_host(Stack& stack, bool narrow);
  // After the kernel ran: brings changed shapes and memory back, and replaces the results by device values.
  void results_to_device(Stack& stack);
  // Instead, when the kernel failed: what it did to memory before is done.
  void give_back();

  c10::DeviceIndex device() const;

 private:
  struct Pair {
    at::Tensor device;
    at::Tensor host;
    at::Tensor narrowed;  // what the kernel saw instead of `host`, if not the same
    bool written;
  };

  c10::IValue to_host(const c10::IValue& value, size_t argument);
  c10::IValue to_device(const c10::IValue& value);
  at::Tensor lend_tensor(const at::Tensor& tensor, size_t argument);
  at::Tensor adopt_result(const at::Tensor& tensor);
  c10::IValue host_generator_for(const c10::IValue& value) const;
  void check_devices() const;
  void write_back();
  void follow_memory(const at::Tensor& device, const at::Tensor& host);

  const Signature& signature_;
  c10::SmallVector<Pair, 8> pairs_;
  int device_ = -1;
  int host_argument_ = -1;
  bool narrow_ = false;
};

}  // namespace neuronqa
