// Operators on the device that make, copy or re-point memory. They have no host kernel to borrow.
#include <ATen/EmptyTensor.h>
#include <ATen/ops/_copy_from.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/zero.h>
#include <torch/library.h>

#include <chrono>

#include "autograd.h"
#include "device.h"
#include "memory.h"
#include "numerics.h"
#include "operator.h"

namespace neuronqa {
namespace {

using at::Tensor;
using OptionalDtype = std::optional<at::ScalarType>;
using OptionalLayout = std::optional<at::Layout>;
using OptionalDevice = std::optional<at::Device>;

const c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

c10::DeviceIndex index_of(const OptionalDevice& device) {
  return resolve(device ? device->index() : c10::DeviceIndex(-1));
}

void check_layout(const OptionalLayout& layout) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !layout || *layout == at::kStrided, "the 'neuron' backend holds strided tensors only, not ", *layout);
}

// Text of the public torch-neuronx source, April 2026. Inside a graph a layout is the compiler's own affair.
void check_memory_format(const std::optional<at::MemoryFormat>& format) {
  TORCH_CHECK(
      !settings().contiguous_only || in_graph() || !format || *format == at::MemoryFormat::Contiguous ||
          *format == at::MemoryFormat::Preserve,
      "Memory format ",
      *format,
      " is not supported: Neuron tensors only support contiguous or preserve memory format");
}

Tensor empty(
    c10::SymIntArrayRef size,
    OptionalDtype dtype,
    OptionalLayout layout,
    OptionalDevice device,
    std::optional<bool>,
    std::optional<at::MemoryFormat> format) {
  check_layout(layout);
  check_memory_format(format);
  const c10::DeviceGuard guard(c10::Device(kNeuron, index_of(device)));
  return at::detail::empty_generic(
      C10_AS_INTARRAYREF_SLOW(size), device_allocator(), kKeys, c10::dtype_or_default(dtype), format);
}

Tensor empty_strided(
    c10::SymIntArrayRef size,
    c10::SymIntArrayRef stride,
    OptionalDtype dtype,
    OptionalLayout layout,
    OptionalDevice device,
    std::optional<bool>) {
  check_layout(layout);
  const c10::DeviceGuard guard(c10::Device(kNeuron, index_of(device)));
  return at::detail::empty_strided_generic(
      C10_AS_INTARRAYREF_SLOW(size),
      C10_AS_INTARRAYREF_SLOW(stride),
      device_allocator(),
      kKeys,
      c10::dtype_or_default(dtype));
}

// The CPU's kernel returns a tensor without storage, which nothing here could lend: real zeros instead.
Tensor zero_tensor(
    c10::SymIntArrayRef size,
    OptionalDtype dtype,
    OptionalLayout layout,
    OptionalDevice device,
    std::optional<bool> pin) {
  return empty(size, dtype, layout, device, pin, std::nullopt).zero_();
}

// A host view carries no conjugate or negative bit; copying has to see them.
Tensor seen_by_copy(const Tensor& tensor) {
  if (tensor.device().type() != kNeuron) {
    return tensor;
  }
  auto view = host_view(tensor);
  if (tensor.is_conj()) {
    view = view.conj();
  }
  return tensor.is_neg() ? view._neg_view() : view;
}

Tensor copy_from(const Tensor& from, const Tensor& to, bool non_blocking) {
  static Operator& entry = operator_named("aten::_copy_from");
  const Running running(entry.mark());
  const bool leaves = to.device().type() != kNeuron;
  if (leaves) {
    raise_pending_error();
  }
  const auto start = std::chrono::steady_clock::now();
  if (settings().stochastic_rounding && from.scalar_type() == at::kFloat &&
      (to.scalar_type() == at::kBFloat16 || to.scalar_type() == at::kHalf)) {
    seen_by_copy(to).copy_(rounded_stochastically(seen_by_copy(from), to.scalar_type()));
  } else {
    seen_by_copy(to).copy_(seen_by_copy(from), non_blocking);
  }
  if (recording()) {
    const bool crosses = leaves || from.device().type() != kNeuron;
    const auto mechanism = in_overlay() && leaves ? Mechanism::kNoKernel : Mechanism::kNative;
    const bool backward = in_backward();
    const auto span = std::chrono::steady_clock::now() - start;
    Use use{from.scalar_type(), mechanism, backward, 1};
    use.bytes = crosses ? from.numel() * static_cast<int64_t>(from.itemsize()) : 0;
    use.nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(span).count();
    if (!entry.tally.knows(use.dtype, mechanism, backward)) {
      use.geometry = {{from.sizes().vec()}, {from.strides().vec()}};
    }
    entry.tally.add(std::move(use));
  }
  return to;
}

Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

Tensor& set_storage_at(
    Tensor& self, at::Storage storage, c10::SymInt offset, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  TORCH_CHECK(
      storage.device().type() == kNeuron,
      "Attempted to set the storage of a tensor on device \"",
      self.device(),
      "\" to a storage on different device \"",
      storage.device(),
      "\". This is no longer allowed; the devices must match.");
  auto* impl = self.unsafeGetTensorImpl();
  const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  const bool strided = stride.size() == size.size() && !(stride.empty() && !size.empty());
  impl->set_storage_keep_dtype(std::move(storage));
  if (strided) {
    impl->set_sizes_and_strides(sizes, C10_AS_INTARRAYREF_SLOW(stride), offset.expect_int());
  } else {
    impl->set_storage_offset(offset.expect_int());
    impl->set_sizes_contiguous(sizes);
  }
  return self;
}

Tensor& set_storage(Tensor& self, at::Storage storage) {
  const auto elements = static_cast<int64_t>(storage.nbytes() / self.itemsize());
  return set_storage_at(self, std::move(storage), 0, {c10::SymInt(elements)}, {});
}

Tensor& set_tensor(Tensor& self, const Tensor& source) {
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(source.storage());
  impl->set_sizes_and_strides(source.sizes(), source.strides(), source.storage_offset());
  return self;
}

Tensor& set_nothing(Tensor& self) {
  return set_tensor(
      self, at::detail::empty_generic({0}, device_allocator(), kKeys, self.scalar_type(), std::nullopt));
}

void record_stream(Tensor&, at::Stream) {}

// True lets Module.to move a parameter in place: it stays the same object and keeps its ties.
bool has_compatible_type(const Tensor& self, const Tensor& from) {
  if (self.device().type() != from.device().type() && !settings().keeps_parameters) {
    return false;
  }
  return self.layout() == from.layout();
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("_efficientzerotensor", zero_tensor);
  library.impl("_copy_from", copy_from);
  library.impl("_copy_from_and_resize", copy_from_and_resize);
  library.impl("set_.source_Storage_storage_offset", set_storage_at);
  library.impl("set_.source_Storage", set_storage);
  library.impl("set_.source_Tensor", set_tensor);
  library.impl("set_", set_nothing);
  library.impl("record_stream", record_stream);
  library.impl("_has_compatible_shallow_copy_type", has_compatible_type);
}

// The fallbacks of these keys clone, clone copies, and copying comes back here: without end, unless they are passed by.
TORCH_LIBRARY_IMPL(aten, Conjugate, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

}  // namespace neuronqa
