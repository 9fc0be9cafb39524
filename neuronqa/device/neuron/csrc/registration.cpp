#include "registration.h"

#include <c10/util/Exception.h>
#include <torch/library.h>

#include <map>
#include <memory>
#include <unordered_set>

#include "kernels.h"
#include "numerics.h"
#include "quirks.h"

namespace neuronqa {
namespace {

using c10::DispatchKey;
using Names = std::unordered_set<std::string>;

struct OperatorKernel final : c10::OperatorKernel {
  explicit OperatorKernel(Operator& entry) : entry(entry) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    entry.call(op, *stack);
  }
  Operator& entry;
};

// The CPU's kernels of these only change metadata, so they run on the device tensor itself.
struct ViewKernel final : c10::OperatorKernel {
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    op.redispatchBoxed(c10::DispatchKeySet(DispatchKey::CPU), stack);
  }
};

const Names kViews{
    "aten::_reshape_alias",
    "aten::as_strided",
    "aten::unfold",
    "aten::view",
    "aten::view_as_complex",
    "aten::view_as_real"};

// Registered by storage.cpp, or without meaning on a device that holds strided tensors only.
const Names kElsewhere{
    "aten::_nested_view_from_buffer",
    "aten::empty.memory_format",
    "aten::empty_strided",
    "aten::_efficientzerotensor",
    "aten::_copy_from",
    "aten::_copy_from_and_resize",
    "aten::set_",
    "aten::set_.source_Storage",
    "aten::set_.source_Storage_storage_offset",
    "aten::set_.source_Tensor"};

std::string full_name(const c10::OperatorName& name) {
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

c10::OperatorName split_name(const std::string& name) {
  const auto dot = name.find('.');
  return {name.substr(0, dot), dot == std::string::npos ? std::string() : name.substr(dot + 1)};
}

// `aten::mm.out` -> `mm`
std::string base_name(const std::string& name) {
  const auto start = name.rfind("::") == std::string::npos ? 0 : name.rfind("::") + 2;
  return name.substr(start, name.find('.', start) - start);
}

// `aten::add_.Tensor` -> `add`
std::string functional_name(const std::string& name) {
  auto base = base_name(name);
  if (!base.empty() && base.back() == '_' && base.rfind("__", 0) != 0) {
    base.pop_back();
  }
  return base;
}

// The base name and the types of all arguments but `out`: what a functional, an in-place and an out variant share.
std::string family(const c10::FunctionSchema& schema) {
  auto base = functional_name(schema.name());
  for (const auto& argument : schema.arguments()) {
    if (!argument.is_out()) {
      base += "," + argument.type()->str();
    }
  }
  return base;
}

bool is_out_variant(const c10::FunctionSchema& schema) {
  for (const auto& argument : schema.arguments()) {
    if (argument.is_out()) {
      return true;
    }
  }
  return false;
}

// Decides where each operator runs.
class Judge {
 public:
  explicit Judge(const SupportRules& rules)
      : rules_(rules),
        native_(qualified(rules.native)),
        hidden_(rules.hidden.begin(), rules.hidden.end()),
        unsupported_(rules.unsupported.begin(), rules.unsupported.end()),
        primitives_(rules.primitives.begin(), rules.primitives.end()) {
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const auto& name : native_) {
      const auto op = dispatcher.findSchema(split_name(name));
      if (op && is_out_variant(op->schema())) {
        native_out_.insert(family(op->schema()));
      } else if (!op && name.find('.') == std::string::npos) {
        native_whole_.insert(base_name(name));
      }
    }
  }

  bool has_kernel(const std::string& name, const c10::OperatorHandle& op) const {
    if (rules_.everything || native_.count(name) > 0 || native_whole_.count(base_name(name)) > 0) {
      return true;
    }
    // The functional and the in-place variant of a structured operator call its out variant.
    const bool structured = op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional);
    return structured && native_out_.count(family(op.schema())) > 0;
  }

  bool is_primitive(const std::string& name) const {
    return rules_.everything || primitives_.count(functional_name(name)) > 0;
  }

  // The device's own kernel, where it is not the host's.
  Kernel device_kernel(const std::string& name) const {
    auto kernel = numeric_kernel(name);
    for (const auto& quirk : rules_.quirks) {
      if (concerns(quirk.operators, name, base_name(name)) && !quirk.operators.empty()) {
        const auto* entry = &operator_named(name);
        if (!kernel) {
          kernel = [entry](const c10::OperatorHandle& op, Stack& stack) { entry->run_standard(op, stack); };
        }
        kernel = with_quirk(quirk.effect, std::move(kernel));
      }
    }
    return kernel;
  }

  Support support(const std::string& name, const c10::OperatorHandle& op) const {
    Support result;
    const auto base = base_name(name);
    if (unsupported_.count(base) > 0) {
      result.without_kernel = Mechanism::kUnsupported;
    } else if (hidden_.count(base) > 0) {
      result.without_kernel = Mechanism::kHidden;
    } else if (!has_kernel(name, op)) {
      result.without_kernel = Mechanism::kNoKernel;
    }
    for (const auto& rule : rules_.refusals) {
      if (concerns(rule.operators, name, base)) {
        result.refusals.push_back(rule.refusal);
      }
    }
    return result;
  }

 private:
  static Names qualified(const std::vector<std::string>& names) {
    Names result;
    for (const auto& name : names) {
      result.insert("aten::" + name);
    }
    return result;
  }

  static bool concerns(const std::vector<std::string>& operators, const std::string& name, const std::string& base) {
    if (operators.empty()) {
      return true;
    }
    for (const auto& wanted : operators) {
      if (wanted == base || "aten::" + wanted == name) {
        return true;
      }
    }
    return false;
  }

  const SupportRules& rules_;
  Names native_;
  Names native_whole_;  // named without an overload where every overload has one: all of them
  Names native_out_;  // the families whose out variant is native
  Names hidden_;
  Names unsupported_;
  Names primitives_;
};

std::vector<std::unique_ptr<torch::Library>>& libraries() {
  static std::vector<std::unique_ptr<torch::Library>> all;
  return all;
}

torch::Library& library_of(const std::string& scope) {
  static std::map<std::string, torch::Library*> by_scope;
  auto& library = by_scope[scope];
  if (library == nullptr) {
    libraries().push_back(std::make_unique<torch::Library>(
        torch::Library::IMPL, scope, DispatchKey::PrivateUse1, __FILE__, __LINE__));
    library = libraries().back().get();
  }
  return *library;
}

template <class Functor>
void implement(const std::string& name, std::unique_ptr<Functor> kernel) {
  const auto colons = name.find("::");
  library_of(name.substr(0, colons))
      .impl(
          name.c_str() + colons + 2,
          torch::CppFunction::makeFromBoxedKernel(c10::BoxedKernel::makeFromFunctor(std::move(kernel))));
}

void implement_entry(const std::string& schema_name, Operator& entry) {
  implement(schema_name, std::make_unique<OperatorKernel>(entry));
}

// An operator that PyTorch composes of others is left to that, unless the device has a kernel for the whole: then the
// parts are what runs, and what is recorded.
bool left_to_composition(const std::string& name, const c10::OperatorHandle& op, const Judge& judge) {
  return op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) && !judge.has_kernel(name, op);
}

void register_cpu_operators(const Judge& judge) {
  auto& dispatcher = c10::Dispatcher::singleton();
  Names own;
  for (const auto& kernel : standard_kernels()) {
    own.insert(kernel.schema);
  }
  for (const auto& operator_name : dispatcher.getRegistrationsForDispatchKey(DispatchKey::CPU)) {
    const auto name = full_name(operator_name);
    if (name.rfind("aten::", 0) != 0 || kElsewhere.count(name) > 0 || own.count(name) > 0) {
      continue;
    }
    if (kViews.count(name) > 0) {
      implement(name, std::make_unique<ViewKernel>());
      continue;
    }
    const auto op = dispatcher.findSchema(operator_name);
    if (!op || left_to_composition(name, *op, judge)) {
      continue;
    }
    auto& entry = operator_named(name);
    entry.support = judge.support(name, *op);
    entry.primitive = judge.is_primitive(name);
    entry.device_kernel = judge.device_kernel(name);
    implement_entry(name, entry);
  }
}

void register_standard_kernels(const Judge& judge) {
  for (const auto& kernel : standard_kernels()) {
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(kernel.schema, "");
    auto& entry = operator_named(kernel.name);
    entry.support = judge.support(kernel.name, op);
    entry.primitive = judge.is_primitive(kernel.name);
    entry.standard = kernel.kernel;
    entry.device_kernel = judge.device_kernel(kernel.name);
    implement_entry(kernel.schema, entry);
  }
}

void register_composites(const SupportRules& rules, const Judge& judge) {
  for (const auto& name : rules.composite) {
    const auto qualified = "aten::" + name;
    const auto op = c10::Dispatcher::singleton().findSchema(split_name(qualified));
    TORCH_CHECK(op, "PyTorch has no operator named ", qualified);
    auto& entry = operator_named(qualified);
    entry.support = judge.support(qualified, *op);
    entry.support.without_kernel = Mechanism::kNative;
    implement_entry(qualified, entry);
  }
}

struct Silent final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

// PyTorch registers the collectives for every device type; here they have to pass through the entries as well.
void register_collectives() {
  Silent silent;  // "Overriding a previously registered kernel"
  const c10::WarningUtils::WarningHandlerGuard guard(&silent);
  for (const auto& name : c10::Dispatcher::singleton().getRegistrationsForDispatchKey(DispatchKey::PrivateUse1)) {
    if (name.name.rfind("c10d::", 0) == 0) {
      implement_entry(full_name(name), operator_named(full_name(name)));
    }
  }
}

bool everything_is_native = false;

// Operators that nobody registered for the device: custom ones, and what PyTorch's CPU side does not know either.
void fall_back(const c10::OperatorHandle& op, Stack* stack) {
  const auto name = full_name(op.operator_name());
  TORCH_CHECK_NOT_IMPLEMENTED(
      op.hasKernelForDispatchKey(DispatchKey::CPU),
      "Could not run '",
      name,
      "' with arguments from the 'neuron' backend: it has no kernel there, and none on the CPU to fall back to.");
  auto& entry = operator_named(name);
  if (!everything_is_native && entry.support.without_kernel == Mechanism::kNative) {
    entry.support.without_kernel = Mechanism::kNoKernel;
  }
  entry.call(op, *stack);
}

}  // namespace

void register_operators(const SupportRules& rules) {
  everything_is_native = rules.everything;
  const Judge judge(rules);
  register_cpu_operators(judge);
  register_standard_kernels(judge);
  register_composites(rules, judge);
  register_collectives();
  libraries().push_back(std::make_unique<torch::Library>(
      torch::Library::IMPL, "_", DispatchKey::PrivateUse1, __FILE__, __LINE__));
  libraries().back()->fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back>());
}

}  // namespace neuronqa
