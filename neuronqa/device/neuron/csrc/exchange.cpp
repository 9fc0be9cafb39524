#include "exchange.h"

#include <ATen/ops/clone.h>

#include "device.h"
#include "generator.h"
#include "memory.h"
#include "narrow.h"

namespace neuronqa {
namespace {

using c10::IValue;

at::Tensor over(const c10::Storage& storage, c10::DispatchKey key, const at::Tensor& like) {
  auto made = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), c10::DispatchKeySet(key), like.dtype());
  auto* impl = made.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) {
    impl->set_wrapped_number(true);
  }
  return made;
}

bool on_device(const at::Tensor& tensor) {
  return tensor.device().type() == kNeuron;
}

bool same_geometry(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() && a.storage_offset() == b.storage_offset();
}

bool is_nested_list(const IValue& value) {
  return value.isList() && value.toList().elementType()->kind() == c10::TypeKind::ListType;
}

// Applies `change` to every tensor in a tensor, a list, a list of optionals, or a list of lists (the c10d operators).
template <class Change>
IValue map_tensors(const IValue& value, const Change& change) {
  if (value.isTensor()) {
    return change(value.toTensor());
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> changed;
    for (const at::Tensor& tensor : value.toTensorList()) {
      changed.push_back(change(tensor));
    }
    return changed;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> changed;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList()) {
      changed.push_back(tensor ? std::optional<at::Tensor>(change(*tensor)) : std::nullopt);
    }
    return changed;
  }
  if (is_nested_list(value)) {
    const auto list = value.toList();
    c10::impl::GenericList changed(list.elementType());
    for (const IValue& item : list) {
      changed.push_back(map_tensors(item, change));
    }
    return changed;
  }
  return value;
}

template <class Visit>
void each_tensor(const IValue& value, const Visit& visit) {
  const auto see = [&](const at::Tensor& tensor) {
    if (tensor.defined()) {
      visit(tensor);
    }
  };
  if (value.isTensor()) {
    see(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorList()) {
      see(tensor);
    }
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList()) {
      if (tensor) {
        see(*tensor);
      }
    }
  }
}

template <class Visit>
void each_argument(const Stack& stack, const Signature& signature, const Visit& visit) {
  const auto first = stack.size() - signature.arguments;
  for (size_t i = 0; i < signature.arguments; ++i) {
    if (!signature.is_plain(i)) {
      each_tensor(stack[first + i], visit);
    }
  }
}

}  // namespace

at::Tensor host_view(const at::Tensor& tensor) {
  return over(lend(tensor.storage()), c10::DispatchKey::CPU, tensor);
}

at::Tensor adopt_tensor(const at::Tensor& tensor, c10::DeviceIndex device) {
  return over(adopt(tensor.storage(), device), c10::DispatchKey::PrivateUse1, tensor);
}

void Census::count(const at::Tensor& tensor) {
  const auto own = tensor.scalar_type();
  if (dtypes == 0) {
    first_dtype = bit(own);
  }
  if (tensor.dim() > 0 || dtypes == 0) {
    dtypes |= bit(own);
  }
  if (dtype == c10::ScalarType::Undefined || (!c10::isFloatingType(dtype) && c10::isFloatingType(own))) {
    dtype = own;
  }
  if (tensor.layout() == c10::kStrided) {
    bytes += tensor.numel() * static_cast<int64_t>(tensor.itemsize());
  }
}

Census census_of_arguments(const Stack& stack, const Signature& signature) {
  Census result;
  each_argument(stack, signature, [&](const at::Tensor& tensor) { result.count(tensor); });
  return result;
}

Census census_of_results(const Stack& stack, const Signature& signature) {
  Census result;
  for (size_t i = stack.size() - signature.returns; i < stack.size(); ++i) {
    each_tensor(stack[i], [&](const at::Tensor& tensor) { result.count(tensor); });
  }
  return result;
}

Geometry geometry_of_arguments(const Stack& stack, const Signature& signature) {
  Geometry geometry;
  each_argument(stack, signature, [&](const at::Tensor& tensor) {
    geometry.shapes.push_back(tensor.sizes().vec());
    geometry.strides.push_back(tensor.layout() == c10::kStrided ? tensor.strides().vec() : std::vector<int64_t>());
  });
  return geometry;
}

c10::DeviceIndex Exchange::device() const {
  return device_ < 0 ? current_device() : static_cast<c10::DeviceIndex>(device_);
}

void Exchange::arguments_to_host(Stack& stack, bool narrow) {
  narrow_ = narrow;
  const auto base = stack.size() - signature_.arguments;
  for (size_t i = 0; i < signature_.arguments; ++i) {
    if (!signature_.is_plain(i)) {
      stack[base + i] = to_host(stack[base + i], i);
    }
  }
  // Last, because the device is known only once every argument was seen.
  if (signature_.generator_argument >= 0) {
    auto& value = stack[base + signature_.generator_argument];
    value = host_generator_for(value);
  }
  check_devices();
}

IValue Exchange::to_host(const IValue& value, size_t argument) {
  if (value.isDevice() && value.toDevice().type() == kNeuron) {
    device_ = resolve(value.toDevice().index());
    return c10::Device(c10::kCPU);
  }
  return map_tensors(value, [&](const at::Tensor& tensor) { return lend_tensor(tensor, argument); });
}

at::Tensor Exchange::lend_tensor(const at::Tensor& tensor, size_t argument) {
  if (!tensor.defined()) {
    return tensor;
  }
  if (!on_device(tensor)) {
    if (tensor.dim() > 0 && tensor.device().is_cpu() && host_argument_ < 0) {
      host_argument_ = static_cast<int>(argument);
    }
    return tensor;
  }
  const auto index = tensor.device().index();
  if (device_ < 0) {
    device_ = index;
  }
  TORCH_CHECK(
      device_ == index || signature_.takes_host_tensors,
      "Expected all tensors to be on the same device, but found at least two devices, neuron:",
      device_,
      " and ",
      tensor.device(),
      "! (",
      signature_.name,
      ")");
  for (const auto& pair : pairs_) {
    if (pair.device.is_same(tensor)) {
      return pair.narrowed.defined() ? pair.narrowed : pair.host;
    }
  }
  auto host = host_view(tensor);
  // Some operators take these as they are, and their host kernels have to see it.
  if (tensor.is_conj()) {
    host._set_conj(true);
  }
  if (tensor.is_neg()) {
    host._set_neg(true);
  }
  auto narrowed = narrow_ && must_narrow(host) ? narrowed_copy(host) : at::Tensor();
  const bool written = argument < 64 && ((signature_.written_in_place >> argument) & 1) != 0;
  pairs_.push_back({tensor, host, narrowed, written});
  return narrowed.defined() ? narrowed : host;
}

IValue Exchange::host_generator_for(const IValue& value) const {
  if (value.isNone()) {
    return host_generator(default_generator(device()));
  }
  const auto generator = value.toGenerator();
  TORCH_CHECK(
      generator.device().type() == kNeuron,
      "Expected a 'neuron' device type for generator but found '",
      generator.device().type(),
      "'");
  return host_generator(generator);
}

// Text of the public torch-neuronx source, April 2026.
void Exchange::check_devices() const {
  TORCH_CHECK(
      host_argument_ < 0 || device_ < 0 || signature_.takes_host_tensors,
      "Non-scalar tensor arg",
      host_argument_,
      " is on cpu device, expected neuron (",
      signature_.name,
      ")");
}

void Exchange::results_to_device(Stack& stack) {
  write_back();
  for (size_t i = stack.size() - signature_.returns; i < stack.size(); ++i) {
    stack[i] = to_device(stack[i]);
  }
}

// `out=` and `resize_` may have given a lent tensor another shape or other memory.
void Exchange::write_back() {
  for (auto& pair : pairs_) {
    if (pair.narrowed.defined() && pair.written) {
      pair.host.copy_(pair.narrowed);
    }
    follow_memory(pair.device, pair.host);
    if (!same_geometry(pair.host, pair.device)) {
      pair.device.unsafeGetTensorImpl()->set_sizes_and_strides(
          pair.host.sizes(), pair.host.strides(), pair.host.storage_offset());
    }
  }
}

void Exchange::give_back() {
  for (auto& pair : pairs_) {
    follow_memory(pair.device, pair.host);
  }
}

void Exchange::follow_memory(const at::Tensor& device, const at::Tensor& host) {
  const auto& from = host.storage();
  const auto& to = device.storage();
  if (from.data() != to.data() || from.nbytes() != to.nbytes()) {
    take_over(to, from);
  }
}

IValue Exchange::to_device(const IValue& value) {
  return map_tensors(value, [&](const at::Tensor& tensor) { return adopt_result(tensor); });
}

at::Tensor Exchange::adopt_result(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.device().is_cpu()) {
    return tensor;
  }
  if (narrow_ && tensor.layout() == c10::kStrided && must_narrow(tensor)) {
    narrow_in_place(tensor);
  }
  for (const auto& pair : pairs_) {
    if (pair.host.is_same(tensor) || pair.narrowed.is_same(tensor)) {
      return pair.device;
    }
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      tensor.layout() == c10::kStrided && tensor.has_storage() && !tensor.is_quantized() && !tensor.is_nested(),
      "'",
      signature_.name,
      "' would return a sparse, quantized, nested or opaque tensor, which the 'neuron' backend does not support.");
  if (tensor._is_zerotensor() || tensor.is_conj() || tensor.is_neg()) {
    return adopt_tensor(tensor.clone().resolve_conj().resolve_neg(), device());
  }
  for (const auto& pair : pairs_) {
    if (pair.host.storage().is_alias_of(tensor.storage())) {
      return over(pair.device.storage(), c10::DispatchKey::PrivateUse1, tensor);
    }
  }
  return adopt_tensor(tensor, device());
}

}  // namespace neuronqa
