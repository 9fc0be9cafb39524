// One entry per operator: every use of an operator on the device passes through `Operator::call`, and whatever a
// profile, an overlay or a planted fault changes about an operator sits inside it, so that nothing escapes recording.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "exchange.h"
#include "ledger.h"

namespace neuronqa {

using Kernel = std::function<void(const c10::OperatorHandle&, Stack&)>;

// Dtypes that a kernel does not take although it exists: of its first tensor, or of any.
struct Refusal {
  uint64_t dtypes;
  bool any_tensor;
  Mechanism mechanism;  // kArguments or kRecovered
  std::string message;
};

// Where an operator runs when it is called by itself. Inside a compiled graph everything is native: what the compiler
// refuses never gets into a graph.
struct Support {
  Mechanism without_kernel = Mechanism::kNative;  // kNative: there is a kernel
  std::vector<Refusal> refusals;
};

class Operator {
 public:
  explicit Operator(std::string name);

  void call(const c10::OperatorHandle& op, Stack& stack);
  // Runs the standard kernel on host values.
  void run_standard(const c10::OperatorHandle& op, Stack& stack) const;
  // Runs what the device itself would: its own numerics and quirks, or the standard kernel.
  void run_native(const c10::OperatorHandle& op, Stack& stack) const;
  void learn(const c10::OperatorHandle& op);

  const std::string& name() const {
    return signature_.name;
  }
  const Mark& mark() const {
    return mark_;
  }
  const Signature& signature() const {
    return signature_;
  }

  Support support;
  Kernel standard;  // stands in for the CPU's kernel where the CPU has none of that name
  Kernel device_kernel;  // numerics and quirks of the profile
  Kernel replacement;  // a fault, in Python, on host values
  Kernel overlay;  // a kernel somebody wrote for the device, in Python, on device values
  uint64_t overlay_dtypes = 0;
  bool primitive = false;  // may an overlay be made of it?
  bool forced_to_cpu = false;
  Tally tally;
  // What torch_neuronx's own tracker would list. It forgets on request; the tally does not.
  std::atomic<bool> listed_executed{false};
  std::atomic<bool> listed_fallback{false};

 private:
  struct Route {
    Mechanism mechanism;
    bool by_overlay;
  };

  Route route(const Census& arguments) const;
  Mechanism place(const Census& arguments) const;
  bool has_overlay_for(const Census& arguments) const;
  void run_overlay(const c10::OperatorHandle& op, Stack& stack) const;
  void execute(const c10::OperatorHandle& op, Stack& stack, Route route);
  void execute_and_record(const c10::OperatorHandle& op, Stack& stack, Route route, const Census& arguments);
  void borrow_host(const c10::OperatorHandle& op, Stack& stack, Mechanism mechanism) const;
  void run(const c10::OperatorHandle& op, Stack& stack, bool native) const;

  Signature signature_;
  Mark mark_;
  bool learnt_ = false;
  bool has_cpu_kernel_ = false;
};

Operator& operator_named(const std::string& name);
std::vector<Operator*> all_operators();

// The operator whose call was left by an exception, last; empty if none was.
std::string last_failed_operator();

// Is an overlay running on this thread?
bool in_overlay();

// While a compiled graph runs on this thread, every operator is native; while a whole graph runs on the CPU, none is.
enum class GraphState : uint8_t { kOutside, kInside, kOnCpu };
GraphState exchange_graph_state(GraphState state);
bool in_graph();

}  // namespace neuronqa
