// What every operator did: where it ran, how often, how long, and how much it moved.
#pragma once

#include <c10/core/ScalarType.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace neuronqa {

// How an operator came to run where it ran. The numbers are those of neuronqa.domain.observation.OpUse.
enum class Mechanism : uint8_t {
  kNative = 0,
  kNoKernel = 1,  // no kernel is registered for the device
  kArguments = 2,  // a kernel exists, and refuses these arguments
  kRecovered = 3,  // the compiler or the runtime failed, and the CPU took over
  kHidden = 4,  // a kernel exists, and itself copies to the CPU
  kWholeGraph = 5,  // the whole graph ran on the CPU
  kUnsupported = 6,  // refused with an error; never recorded as a use
};

// Of the tensors among the arguments, in order.
struct Geometry {
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::vector<int64_t>> strides;
};

struct Use {
  c10::ScalarType dtype;
  Mechanism mechanism;
  bool backward;
  int64_t count = 0;
  int64_t bytes = 0;  // moved between device and host, both ways
  int64_t nanoseconds = 0;
  Geometry geometry;  // of the inputs, the first time
};

// The uses of one operator. Autograd runs on a thread of its own, hence the lock.
class Tally {
 public:
  // Adds a use to those of its dtype, mechanism and direction; of the first, the geometry is kept.
  void add(Use use);
  bool knows(c10::ScalarType dtype, Mechanism mechanism, bool backward) const;
  std::vector<Use> uses() const;
  void clear();

 private:
  mutable std::mutex mutex_;
  std::vector<Use> uses_;
};

// Recording is off until somebody asks for it.
bool recording();
void set_recording(bool on);

// A file, mapped into memory, that holds the name of the operator that is running, so that a supervisor can read it
// after a crash. The name is terminated by NUL; an empty name means that none runs.
constexpr size_t kMarkSize = 128;
using Mark = std::array<char, kMarkSize>;
Mark make_mark(const std::string& name);
void map_mark_file(const std::string& path);

class Running {
 public:
  explicit Running(const Mark& mark);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
};

}  // namespace neuronqa
