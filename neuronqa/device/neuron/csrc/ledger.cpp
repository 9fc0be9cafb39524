#include "ledger.h"

#include <c10/util/Exception.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace neuronqa {
namespace {

std::atomic<bool> is_recording{false};
char* mark_file = nullptr;

bool alike(const Use& a, const Use& b) {
  return a.dtype == b.dtype && a.mechanism == b.mechanism && a.backward == b.backward;
}

}  // namespace

void Tally::add(Use use) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& known : uses_) {
    if (alike(known, use)) {
      known.count += use.count;
      known.bytes += use.bytes;
      known.nanoseconds += use.nanoseconds;
      return;
    }
  }
  uses_.push_back(std::move(use));
}

bool Tally::knows(c10::ScalarType dtype, Mechanism mechanism, bool backward) const {
  const Use wanted{dtype, mechanism, backward};
  std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(uses_.begin(), uses_.end(), [&](const Use& known) { return alike(known, wanted); });
}

std::vector<Use> Tally::uses() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return uses_;
}

void Tally::clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  uses_.clear();
}

bool recording() {
  return is_recording.load(std::memory_order_relaxed);
}

void set_recording(bool on) {
  is_recording = on;
}

Mark make_mark(const std::string& name) {
  Mark mark{};
  std::strncpy(mark.data(), name.c_str(), kMarkSize - 1);
  return mark;
}

void map_mark_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  TORCH_CHECK(file >= 0, "cannot open ", path, ": ", std::strerror(errno));
  struct stat status {};
  const bool sized = ::fstat(file, &status) == 0 &&
      (status.st_size >= static_cast<off_t>(kMarkSize) || ::ftruncate(file, kMarkSize) == 0);
  void* mapped = sized ? ::mmap(nullptr, kMarkSize, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  const int error = errno;
  ::close(file);
  TORCH_CHECK(mapped != MAP_FAILED, "cannot map ", path, ": ", std::strerror(error));
  mark_file = static_cast<char*>(mapped);
}

Running::Running(const Mark& mark) {
  if (mark_file != nullptr) {
    std::memcpy(mark_file, mark.data(), kMarkSize);
  }
}

Running::~Running() {
  if (mark_file != nullptr) {
    mark_file[0] = '\0';
  }
}

}  // namespace neuronqa
