// 64-bit values on a device that computes with 32 bits.
//
// TorchNeuron casts int64 to int32 and float64 to float32 before an operator and back after it. Here the values are
// limited instead and the host kernel keeps its dtype: integers wrap, floats are rounded. The result of an operator is
// then that of the 32-bit operator for integers, and its correctly rounded form for floats.
#pragma once

#include <ATen/core/Tensor.h>

namespace neuronqa {

// Does `tensor` hold a value that 32 bits cannot, under the current settings? 0-d tensors never do: they are not cast.
bool must_narrow(const at::Tensor& host_tensor);
at::Tensor narrowed_copy(const at::Tensor& host_tensor);
void narrow_in_place(const at::Tensor& host_tensor);

}  // namespace neuronqa
