#include "operator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "autograd.h"
#include "device.h"
#include "generator.h"
#include "numerics.h"

namespace neuronqa {
namespace {

std::mutex registry_mutex;
std::map<std::string, std::unique_ptr<Operator>> registry;

std::mutex failure_mutex;
std::string failed_operator;

thread_local GraphState graph_state = GraphState::kOutside;
thread_local bool overlay_runs = false;

class OverlayScope {
 public:
  OverlayScope() {
    overlay_runs = true;
  }
  ~OverlayScope() {
    overlay_runs = false;
  }
  OverlayScope(const OverlayScope&) = delete;
  OverlayScope& operator=(const OverlayScope&) = delete;
};

using Clock = std::chrono::steady_clock;

// Operators whose index or condition tensors may lie on the CPU on every accelerator.
bool takes_host_tensors(const std::string& name) {
  static const std::set<std::string> names{
      "aten::index.Tensor", "aten::index.Tensor_out", "aten::_index_put_impl_", "aten::_unsafe_index.Tensor"};
  return names.count(name) > 0;
}

// May a value of this type hold a tensor or a device? Generators are found by their place.
bool may_hold_tensor(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
    case c10::TypeKind::FloatType:
    case c10::TypeKind::BoolType:
    case c10::TypeKind::NumberType:
    case c10::TypeKind::StringType:
    case c10::TypeKind::GeneratorType:
      return false;
    case c10::TypeKind::ListType:
    case c10::TypeKind::OptionalType:
      return may_hold_tensor(*type.containedType(0));
    default:
      return true;
  }
}

void set_once(std::atomic<bool>& listed) {
  if (!listed.load(std::memory_order_relaxed)) {
    listed.store(true, std::memory_order_relaxed);
  }
}

void remember_failure(const std::string& name) {
  std::lock_guard<std::mutex> lock(failure_mutex);
  failed_operator = name;
}

// Texts of the public torch-neuronx source, April 2026: python_ops/base.py and csrc/core/utils/CPUFallbackExecutor.cpp.
void check_fallback_allowed(const std::string& name, const Refusal& refusal) {
  if (settings().fallback_on_refusal) {
    return;
  }
  if (refusal.mechanism == Mechanism::kRecovered) {
    // The compiler works behind the back of the Python line that asked: its error waits on the stream.
    post_error("CPU fallback is disabled for operation=" + name + "\nerror message=\"COMPILATION FAILED: " +
               refusal.message + "\"");
    return;
  }
  TORCH_CHECK(
      false,
      "CPU fallback disabled because TORCH_NEURONX_FALLBACK_ONLY_FOR_UNIMPLEMENTED_OPS=1. Operation ",
      name,
      " failed to execute on Neuron (last implementation: MLIR). Details: ",
      refusal.message);
}

// Draws that take no generator come from the CPU's default one: lend it the device's state for the time of the call.
class LentDefaultGenerator {
 public:
  explicit LentDefaultGenerator(c10::DeviceIndex device)
      : lent_(host_generator(default_generator(device))),
        default_(at::detail::getDefaultCPUGenerator()),
        saved_(default_.get_state()) {
    default_.set_state(lent_.get_state());
  }
  ~LentDefaultGenerator() {
    lent_.set_state(default_.get_state());
    default_.set_state(saved_);
  }
  LentDefaultGenerator(const LentDefaultGenerator&) = delete;
  LentDefaultGenerator& operator=(const LentDefaultGenerator&) = delete;

 private:
  at::Generator lent_;
  at::Generator default_;
  at::Tensor saved_;
};

}  // namespace

Operator::Operator(std::string name) : mark_(make_mark(name)) {
  signature_.name = std::move(name);
  signature_.takes_host_tensors = takes_host_tensors(signature_.name);
}

void Operator::learn(const c10::OperatorHandle& op) {
  const auto& schema = op.schema();
  signature_.arguments = schema.arguments().size();
  signature_.returns = schema.returns().size();
  for (size_t i = 0; i < signature_.arguments; ++i) {
    const auto& argument = schema.arguments()[i];
    auto type = argument.type();
    if (const auto optional = type->cast<c10::OptionalType>()) {
      type = optional->getElementType();
    }
    if (type->kind() == c10::TypeKind::GeneratorType) {
      signature_.generator_argument = static_cast<int>(i);
    }
    if (i < 64 && !may_hold_tensor(*type)) {
      signature_.plain |= uint64_t{1} << i;
    }
    const auto* alias = argument.alias_info();
    if (i < 64 && alias != nullptr && alias->isWrite() && !argument.is_out()) {
      signature_.written_in_place |= uint64_t{1} << i;
    }
  }
  signature_.draws_without_generator =
      op.hasTag(at::Tag::nondeterministic_seeded) && signature_.generator_argument < 0;
  has_cpu_kernel_ = op.hasKernelForDispatchKey(c10::DispatchKey::CPU);
  learnt_ = true;
}

Mechanism Operator::place(const Census& arguments) const {
  if (overlay_runs && !primitive) {
    return Mechanism::kNoKernel;
  }
  if (graph_state == GraphState::kInside && !overlay_runs) {
    return Mechanism::kNative;
  }
  if (graph_state == GraphState::kOnCpu) {
    return Mechanism::kWholeGraph;
  }
  if (forced_to_cpu) {
    return Mechanism::kRecovered;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      support.without_kernel != Mechanism::kUnsupported, "Operation ", name(), " is not implemented for Neuron");
  if (support.without_kernel != Mechanism::kNative) {
    return support.without_kernel;
  }
  for (const auto& refusal : support.refusals) {
    if ((refusal.dtypes & (refusal.any_tensor ? arguments.dtypes : arguments.first_dtype)) != 0) {
      check_fallback_allowed(name(), refusal);
      return refusal.mechanism;
    }
  }
  return Mechanism::kNative;
}

void Operator::run_standard(const c10::OperatorHandle& op, Stack& stack) const {
  if (standard) {
    standard(op, stack);
  } else if (has_cpu_kernel_) {
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  } else {
    c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    op.callBoxed(&stack);
  }
}

void Operator::run(const c10::OperatorHandle& op, Stack& stack, bool native) const {
  if (!native) {
    run_standard(op, stack);
  } else if (replacement) {
    replacement(op, stack);
  } else {
    run_native(op, stack);
  }
}

void Operator::run_native(const c10::OperatorHandle& op, Stack& stack) const {
  const auto plainly = [this](const c10::OperatorHandle& handle, Stack& values) {
    device_kernel ? device_kernel(handle, values) : run_standard(handle, values);
  };
  if (settings().stochastic_rounding) {
    run_with_stochastic_rounding(op, stack, plainly);
  } else {
    plainly(op, stack);
  }
}

// An overlay does not run inside another, nor inside itself: what it calls is what the device had before.
bool Operator::has_overlay_for(const Census& arguments) const {
  return overlay && !overlay_runs && !forced_to_cpu && graph_state != GraphState::kOnCpu &&
      (overlay_dtypes & bit(arguments.dtype)) != 0;
}

void Operator::run_overlay(const c10::OperatorHandle& op, Stack& stack) const {
  const OverlayScope scope;
  overlay(op, stack);
  for (size_t i = stack.size() - signature_.returns; i < stack.size(); ++i) {
    TORCH_CHECK(
        !stack[i].isTensor() || !stack[i].toTensor().defined() || stack[i].toTensor().device().type() == kNeuron,
        "the overlay of ",
        name(),
        " returned a tensor on ",
        stack[i].toTensor().device(),
        ", expected neuron");
  }
}

Operator::Route Operator::route(const Census& arguments) const {
  if (has_overlay_for(arguments)) {
    return {Mechanism::kNative, true};
  }
  return {place(arguments), false};
}

void Operator::borrow_host(const c10::OperatorHandle& op, Stack& stack, Mechanism mechanism) const {
  TORCH_CHECK(
      mechanism != Mechanism::kNoKernel || has_cpu_kernel_ || !standard,
      "CPU fallback failed for '",
      name(),
      "' failed: Could not run '",
      name(),
      "' with arguments from the 'CPU' backend.");
  const bool native = mechanism == Mechanism::kNative;
  Exchange exchange(signature_);
  try {
    exchange.arguments_to_host(stack, native);
    if (signature_.draws_without_generator) {
      const LentDefaultGenerator lent(exchange.device());
      run(op, stack, native);
    } else {
      run(op, stack, native);
    }
  } catch (...) {
    exchange.give_back();
    throw;
  }
  exchange.results_to_device(stack);
}

void Operator::execute(const c10::OperatorHandle& op, Stack& stack, Route route) {
  if (route.by_overlay) {
    run_overlay(op, stack);
  } else {
    borrow_host(op, stack, route.mechanism);
  }
  if (route.mechanism == Mechanism::kNative) {
    set_once(listed_executed);
  } else if (route.mechanism != Mechanism::kHidden) {
    set_once(listed_fallback);
  }
}

void Operator::execute_and_record(
    const c10::OperatorHandle& op, Stack& stack, Route route, const Census& arguments) {
  const bool backward = in_backward();
  const bool known = tally.knows(arguments.dtype, route.mechanism, backward);
  auto geometry = known ? Geometry() : geometry_of_arguments(stack, signature_);
  const auto start = Clock::now();
  execute(op, stack, route);
  const auto span = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
  Use use{arguments.dtype, route.mechanism, backward, 1, 0, span, std::move(geometry)};
  const bool crosses = route.mechanism != Mechanism::kNative;
  if (crosses || use.dtype == c10::ScalarType::Undefined) {
    const auto results = census_of_results(stack, signature_);
    use.dtype = use.dtype == c10::ScalarType::Undefined ? results.dtype : use.dtype;
    use.bytes = crosses ? arguments.bytes + results.bytes : 0;
  }
  tally.add(std::move(use));
}

void Operator::call(const c10::OperatorHandle& op, Stack& stack) {
  if (!learnt_) {
    learn(op);
  }
  const Running running(mark_);
  try {
    const auto arguments = census_of_arguments(stack, signature_);
    const auto chosen = route(arguments);
    if (recording()) {
      execute_and_record(op, stack, chosen, arguments);
    } else {
      execute(op, stack, chosen);
    }
  } catch (...) {
    remember_failure(name());
    throw;
  }
}

Operator& operator_named(const std::string& name) {
  std::lock_guard<std::mutex> lock(registry_mutex);
  auto& entry = registry[name];
  if (!entry) {
    entry = std::make_unique<Operator>(name);
  }
  return *entry;
}

std::vector<Operator*> all_operators() {
  std::lock_guard<std::mutex> lock(registry_mutex);
  std::vector<Operator*> all;
  all.reserve(registry.size());
  for (const auto& [name, entry] : registry) {
    all.push_back(entry.get());
  }
  return all;
}

std::string last_failed_operator() {
  std::lock_guard<std::mutex> lock(failure_mutex);
  return failed_operator;
}

bool in_overlay() {
  return overlay_runs;
}

bool in_graph() {
  return graph_state == GraphState::kInside;
}

GraphState exchange_graph_state(GraphState state) {
  const auto before = graph_state;
  graph_state = state;
  return before;
}

}  // namespace neuronqa
