#include "narrow.h"

#include <ATen/ops/ne.h>

#include <algorithm>

#include "device.h"

namespace neuronqa {
namespace {

int64_t narrow(int64_t value) {
  return static_cast<int32_t>(static_cast<uint32_t>(value));
}

// NaN stays NaN, and is no reason to narrow.
double narrow(double value) {
  return static_cast<double>(static_cast<float>(value));
}

bool changes(int64_t value) {
  return narrow(value) != value;
}

bool changes(double value) {
  return narrow(value) < value || narrow(value) > value;
}

template <class T>
bool any_changes(const at::Tensor& tensor) {
  const auto dense = tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous();
  const T* first = dense.const_data_ptr<T>();
  return std::any_of(first, first + dense.numel(), [](T value) { return changes(value); });
}

template <class T>
void narrow_values(const at::Tensor& tensor) {
  if (!tensor.is_non_overlapping_and_dense()) {
    auto dense = tensor.contiguous();
    narrow_values<T>(dense);
    tensor.copy_(dense);
    return;
  }
  T* first = tensor.mutable_data_ptr<T>();
  std::transform(first, first + tensor.numel(), first, [](T value) { return narrow(value); });
}

}  // namespace

bool must_narrow(const at::Tensor& tensor) {
  if (tensor.dim() == 0 || tensor.numel() == 0) {
    return false;
  }
  if (tensor.scalar_type() == at::kLong) {
    return settings().narrow_int64 && any_changes<int64_t>(tensor);
  }
  if (tensor.scalar_type() == at::kDouble) {
    return settings().narrow_float64 && any_changes<double>(tensor);
  }
  return false;
}

void narrow_in_place(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kLong) {
    narrow_values<int64_t>(tensor);
  } else {
    narrow_values<double>(tensor);
  }
}

at::Tensor narrowed_copy(const at::Tensor& tensor) {
  auto copy = tensor.clone();
  narrow_in_place(copy);
  return copy;
}

}  // namespace neuronqa
