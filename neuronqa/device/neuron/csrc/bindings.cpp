// What the Python side may ask of the device.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/pybind.h>
#include <unistd.h>

#include "autograd.h"
#include "device.h"
#include "exchange.h"
#include "generator.h"
#include "memory.h"
#include "operator.h"
#include "python_kernel.h"
#include "registration.h"

namespace py = pybind11;
using namespace neuronqa;

namespace {

void bind_settings(py::module& m) {
  py::class_<Settings>(m, "Settings")
      .def(py::init<>())
      .def_readwrite("devices", &Settings::devices)
      .def_readwrite("memory_limit", &Settings::memory_limit)
      .def_readwrite("contiguous_only", &Settings::contiguous_only)
      .def_readwrite("narrow_int64", &Settings::narrow_int64)
      .def_readwrite("narrow_float64", &Settings::narrow_float64)
      .def_readwrite("fallback_on_refusal", &Settings::fallback_on_refusal)
      .def_readwrite("blocking", &Settings::blocking)
      .def_readwrite("keeps_parameters", &Settings::keeps_parameters)
      .def_readwrite("matmul_tile", &Settings::matmul_tile)
      .def_readwrite("function_tables", &Settings::function_tables)
      .def_readwrite("stochastic_rounding", &Settings::stochastic_rounding)
      .def_readwrite("rounding_seed", &Settings::rounding_seed);
  m.def("settings", &settings, py::return_value_policy::reference);
  m.def("initialise", &initialise);
  m.def("start_autograd_threads", &start_autograd_threads, py::call_guard<py::gil_scoped_release>());
}

void bind_device(py::module& m) {
  m.def("device_count", [] { return static_cast<int>(device_count()); });
  m.def("current_device", [] { return static_cast<int>(current_device()); });
  m.def("set_device", [](int index) { set_current_device(static_cast<c10::DeviceIndex>(index)); });
  m.def("in_bad_fork", &in_bad_fork);
  m.def("default_generator", [](int index) { return default_generator(static_cast<c10::DeviceIndex>(index)); });
  m.def("post_error", &post_error);
  m.def("synchronize", &raise_pending_error);
  m.def("memory_use", [](int index) {
    const auto use = memory_use(static_cast<c10::DeviceIndex>(index));
    return std::make_tuple(use.current, use.peak, use.allocations);
  });
  m.def("reset_peak", [](int index) { reset_peak(static_cast<c10::DeviceIndex>(index)); });
}

void bind_operators(py::module& m) {
  py::enum_<Mechanism>(m, "Mechanism")
      .value("NATIVE", Mechanism::kNative)
      .value("NO_KERNEL", Mechanism::kNoKernel)
      .value("ARGUMENTS", Mechanism::kArguments)
      .value("RECOVERED", Mechanism::kRecovered)
      .value("HIDDEN", Mechanism::kHidden)
      .value("WHOLE_GRAPH", Mechanism::kWholeGraph)
      .value("UNSUPPORTED", Mechanism::kUnsupported);
  py::enum_<GraphState>(m, "GraphState")
      .value("OUTSIDE", GraphState::kOutside)
      .value("INSIDE", GraphState::kInside)
      .value("ON_CPU", GraphState::kOnCpu);
  py::class_<SupportRules>(m, "SupportRules")
      .def(py::init<>())
      .def_readwrite("everything", &SupportRules::everything)
      .def_readwrite("native", &SupportRules::native)
      .def_readwrite("hidden", &SupportRules::hidden)
      .def_readwrite("unsupported", &SupportRules::unsupported)
      .def_readwrite("composite", &SupportRules::composite)
      .def_readwrite("primitives", &SupportRules::primitives)
      .def("refuse", [](SupportRules& rules,
                        std::vector<std::string> operators,
                        const std::vector<c10::ScalarType>& dtypes,
                        Mechanism mechanism,
                        std::string message) {
        uint64_t mask = 0;
        for (const auto dtype : dtypes) {
          mask |= bit(dtype);
        }
        const bool any_tensor = operators.empty();
        rules.refusals.push_back({std::move(operators), {mask, any_tensor, mechanism, std::move(message)}});
      })
      .def("quirk", [](SupportRules& rules, std::vector<std::string> operators, std::string effect) {
        rules.quirks.push_back({std::move(operators), std::move(effect)});
      });
  m.def("register_operators", &register_operators);
  m.def("operators", [] {
    py::list all;
    for (const auto* entry : all_operators()) {
      all.append(py::make_tuple(entry->name(), entry->support.without_kernel));
    }
    return all;
  });
  m.def("exchange_graph_state", &exchange_graph_state);
  m.def("force_to_cpu", [](const std::string& name) { operator_named(name).forced_to_cpu = true; });
  m.def("support", [](const std::string& name, Mechanism mechanism) {
    operator_named(name).support.without_kernel = mechanism;
  });
  m.def("overlay", [](const std::string& name, py::function function, const std::vector<c10::ScalarType>& dtypes) {
    auto& entry = operator_named(name);
    entry.overlay = python_kernel(entry, std::move(function));
    for (const auto dtype : dtypes) {
      entry.overlay_dtypes |= bit(dtype);
    }
  });
  m.def("note_fallback", [](const std::string& name, c10::ScalarType dtype, int64_t bytes) {
    operator_named(name).tally.add({dtype, Mechanism::kNoKernel, in_backward(), 1, bytes, 0, {}});
  });
  m.def("schema_arguments", [](const std::string& name) -> py::object {
    const auto dot = name.find('.', name.find("::"));
    const auto op = c10::Dispatcher::singleton().findSchema(
        {name.substr(0, dot), dot == std::string::npos ? std::string() : name.substr(dot + 1)});
    return op ? py::cast(op->schema().arguments().size()) : py::none();
  });
  m.def("replace", [](const std::string& name, py::function function) {
    auto& entry = operator_named(name);
    entry.replacement = python_kernel(entry, std::move(function));
  });
}

py::list uses() {
  py::list all;
  for (const auto* entry : all_operators()) {
    for (const auto& use : entry->tally.uses()) {
      all.append(py::make_tuple(
          entry->name(), use.dtype, use.mechanism, use.backward, use.count, use.bytes, use.nanoseconds, use.geometry.shapes, use.geometry.strides));
    }
  }
  return all;
}

py::list listed(std::atomic<bool> Operator::* mark) {
  py::list names;
  for (const auto* entry : all_operators()) {
    if (entry->*mark) {
      names.append(entry->name());
    }
  }
  return names;
}

void bind_ledger(py::module& m) {
  m.def("set_recording", &set_recording);
  m.def("uses", &uses);
  m.def("clear_uses", [] {
    for (auto* entry : all_operators()) {
      entry->tally.clear();
    }
  });
  m.def("listed_executed", [] { return listed(&Operator::listed_executed); });
  m.def("listed_fallback", [] { return listed(&Operator::listed_fallback); });
  m.def("clear_listed", [] {
    for (auto* entry : all_operators()) {
      entry->listed_executed = false;
      entry->listed_fallback = false;
    }
  });
  m.def("map_mark_file", &map_mark_file);
  m.def("last_failed_operator", &last_failed_operator);
}

// Planted faults that must happen in C, where Python cannot see or stop them.
void bind_faults(py::module& m) {
  m.def("fault_segfault", [] {
    volatile int* nowhere = nullptr;
    *nowhere = 1;
  });
  m.def("fault_exit", [](int code) { ::_exit(code); });
  m.def("fault_hang", [] {  // keeps the GIL
    for (;;) {
      ::usleep(100000);
    }
  });
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  bind_settings(m);
  bind_device(m);
  bind_operators(m);
  bind_ledger(m);
  bind_faults(m);
  bind_python_kernels(m);
}
