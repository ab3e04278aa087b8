// What runs the fibers of cuda_on_cpu.h; compiled once, and linked into every kernel's library.
#include "cuda_on_cpu.h"

#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#include <memory>
#include <string>
#include <vector>

Place gridDim, blockDim, blockIdx, threadIdx;

namespace fibers {
struct Copy {
  void *to;
  const void *from;
  int bytes, take;
};
struct Fiber {
  jmp_buf place_in_code;
  Place place;
  bool begun = false, done = false;
  Waits waits = Waits::no;
  Event *event = nullptr;
  std::vector<std::vector<Copy>> groups;  // asynchronous copies that are on their way, the oldest first
  std::vector<Copy> open;                 // those of no group yet
};
constexpr std::size_t STACK = 1 << 16;
unsigned current;
alignas(1024) char dynamic_shared[MOST_SHARED + 1024];
std::size_t shared_base, shared_bytes;
int fill;
unsigned rank, blocks_in_cluster = 1;
Hooks hooks;

static std::vector<Fiber> all;
static jmp_buf home;
static void (*body)(void **);
static void **arguments;
static std::vector<float> handed;  // what each thread holds out to the others of its warp
static std::vector<int> votes;     // what each thread says at a barrier that asks
static std::vector<std::unique_ptr<char[]>> stacks;
static std::vector<std::pair<void *, std::size_t>> declared;
static std::string first_fault;

void blame(const char *what) {
  if (first_fault.empty()) first_fault = what;
}
const char *fault() { return first_fault.c_str(); }

Shared::Shared(void *memory, std::size_t bytes) {
  std::memset(memory, fill, bytes);
  declared.emplace_back(memory, bytes);
}

// A fiber is begun with a context of its own; from then on it comes and goes by longjmp, which asks nothing of the
// system, where swapcontext asks twice.
void wait(Waits where) {
  all[current].waits = where;
  if (_setjmp(all[current].place_in_code) == 0) _longjmp(home, 1);
}

void wait_for(Event &event) {
  if (event.ready()) return;
  all[current].event = &event;
  wait(Waits::for_event);
}

static void run_one() {
  body(arguments);
  all[current].done = true;
  _longjmp(home, 1);
}

// Nothing of this frame may change between the two returns of _setjmp.
__attribute__((noinline)) static void go_on() {
  static ucontext_t context;
  if (_setjmp(home) != 0) return;
  if (all[current].begun) _longjmp(all[current].place_in_code, 1);
  all[current].begun = true;
  getcontext(&context);
  context.uc_stack.ss_sp = stacks[current].get();
  context.uc_stack.ss_size = STACK;
  makecontext(&context, run_one, 0);
  setcontext(&context);
}

// Lets the threads go on that wait for each other there, once all of them do; true if there are any.
static bool open_barrier(Waits where, std::size_t first, std::size_t last) {
  bool opened = false;
  for (std::size_t t = first; t < last; t++) {
    if (!all[t].done && all[t].waits != where) return false;
    opened |= !all[t].done;
  }
  for (std::size_t t = first; t < last; t++) all[t].waits = Waits::no;
  return opened;
}

static void begin_block() {
  const unsigned count = blockDim.x * blockDim.y * blockDim.z;
  for (auto [memory, bytes] : declared) std::memset(memory, fill, bytes);
  std::memset(dynamic_shared, fill, sizeof dynamic_shared);
  all = std::vector<Fiber>(count);
  while (stacks.size() < count) stacks.emplace_back(new char[STACK]);
  handed.assign(count, 0.0f);
  votes.assign(count, 0);
  for (unsigned t = 0; t < count; t++)
    all[t].place = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
  if (hooks.begin) hooks.begin();
}

static bool goes_on(Fiber &fiber) {
  if (fiber.waits == Waits::for_event && fiber.event->ready()) fiber.waits = Waits::no;
  return !fiber.done && fiber.waits == Waits::no;
}

static bool any_goes_on() {
  for (auto &fiber : all)
    if (!fiber.done && goes_on(fiber)) return true;
  return false;
}

// Runs the block as far as it gets.
static bool go_on_with_block() {
  const unsigned count = blockDim.x * blockDim.y * blockDim.z;
  bool moved = false;
  do {
    for (unsigned first = 0, last; first < count; first = last) {
      last = min(first + 32, count);
      do {
        for (current = first; current < last; current++) {
          if (!goes_on(all[current])) continue;
          threadIdx = all[current].place;
          go_on();
          moved = true;
        }
      } while (open_barrier(Waits::at_warp, first, last));
    }
  } while (first_fault.empty() && (open_barrier(Waits::at_block, 0, count) || any_goes_on()));
  return moved;
}

static unsigned ended() {
  unsigned count = 0;
  for (const auto &fiber : all) count += fiber.done;
  return count;
}

// Who waits for what: threads that wait for the same are told together.
static std::string who_waits() {
  std::string text;
  for (std::size_t first = 0, last, told = 0; first < all.size(); first = last) {
    auto says = [](const Fiber &fiber) -> std::string {
      if (fiber.done) return "";
      if (fiber.waits == Waits::at_warp) return "the rest of their warp";
      if (fiber.waits == Waits::at_block) return "the rest of their block at __syncthreads";
      char line[200] = "";
      if (fiber.waits == Waits::for_event) fiber.event->says(line, sizeof line);
      return line;
    };
    const std::string what = says(all[first]);
    for (last = first + 1; last < all.size() && says(all[last]) == what; last++) {
    }
    if (what.empty() || told++ == 8) continue;
    text += (text.empty() ? "threads " : "; threads ") + std::to_string(first) + " to " + std::to_string(last - 1);
    if (blocks_in_cluster > 1) text += " of block " + std::to_string(rank) + " of the cluster";
    text += " wait for " + what;
  }
  return text;
}

static void end_block() {
  unsigned left = all.size() - ended();
  bool events = false;
  for (const auto &fiber : all) events |= !fiber.done && fiber.waits == Waits::for_event;
  if (events) blame(("deadlock: " + who_waits()).c_str());
  if (left > 0) blame((std::to_string(left) + " threads wait at a barrier for others that never come").c_str());
  if (left == 0 && hooks.end) hooks.end();
  const char *rest = dynamic_shared + shared_base + shared_bytes;
  const std::size_t bytes = sizeof dynamic_shared - shared_base - shared_bytes;
  // All the same, if the first is right and each is like its neighbour.
  if (rest[0] != static_cast<char>(fill) || std::memcmp(rest, rest + 1, bytes - 1) != 0)
    blame("written past the dynamic shared memory asked for");
}

// Runs a block that is alone in its cluster; true if it waits for the other blocks of the grid.
static bool run_block() {
  do {
    go_on_with_block();
  } while (first_fault.empty() && hooks.stuck && hooks.stuck());
  for (const auto &fiber : all)
    if (fiber.waits == Waits::at_grid) return true;
  end_block();
  return false;
}

// A block that waits for the others, with all that is its own. Vectors are moved: no fiber changes its address.
struct Parked {
  Place place = blockIdx;
  std::vector<Fiber> fibers = std::move(all);
  std::vector<std::unique_ptr<char[]>> held = std::move(stacks);
  std::vector<std::vector<char>> shared;
  std::vector<float> hands = handed;
  std::vector<int> said = votes;
  Parked() {
    stacks.clear();
    for (auto [memory, bytes] : declared)
      shared.emplace_back(static_cast<char *>(memory), static_cast<char *>(memory) + bytes);
    shared.emplace_back(dynamic_shared, dynamic_shared + sizeof dynamic_shared);
  }
  void back() {
    blockIdx = place;
    all = std::move(fibers);
    stacks = std::move(held);
    for (std::size_t i = 0; i < declared.size(); i++)
      std::memcpy(declared[i].first, shared[i].data(), declared[i].second);
    std::memcpy(dynamic_shared, shared.back().data(), sizeof dynamic_shared);
    handed = std::move(hands);
    votes = std::move(said);
    for (auto &fiber : all)
      if (fiber.waits == Waits::at_grid) fiber.waits = Waits::no;
  }
};

// Blocks whose turn has passed; the one that runs has left its place empty.
static std::vector<std::unique_ptr<Parked>> turns;

static void turn_to(unsigned next) {
  if (next == rank) return;
  turns[rank] = std::make_unique<Parked>();
  rank = next;
  turns[rank]->back();
  turns[rank].reset();
  if (hooks.comes_back) hooks.comes_back();
}

unsigned ended_in_cluster() {
  unsigned count = ended();
  for (const auto &block : turns)
    for (std::size_t t = 0; block && t < block->fibers.size(); t++) count += block->fibers[t].done;
  return count;
}

static void run_cluster() {
  turns.clear();
  turns.resize(blocks_in_cluster);
  for (rank = 0;; rank++, blockIdx.x++) {
    begin_block();
    if (rank + 1 == blocks_in_cluster) break;
    turns[rank] = std::make_unique<Parked>();
  }
  for (bool moved = true; moved && first_fault.empty();) {
    moved = false;
    for (unsigned r = 0; r < blocks_in_cluster && first_fault.empty(); r++) {
      turn_to(r);
      moved |= go_on_with_block();
    }
    for (unsigned r = 0; r < blocks_in_cluster && !moved && first_fault.empty(); r++) {
      turn_to(r);
      moved = hooks.stuck && hooks.stuck();
    }
  }
  std::string waits;
  for (unsigned r = 0; r < blocks_in_cluster; r++) {
    turn_to(r);
    const std::string here = who_waits();
    waits += (waits.empty() || here.empty() ? "" : "; ") + here;
  }
  if (!waits.empty()) blame(("deadlock: " + waits).c_str());
  for (unsigned r = 0; r < blocks_in_cluster; r++) turn_to(r), end_block();
  turns.clear();
  rank = 0;
}

static void run_all(void (*kernel)(void **), void **held) {
  body = kernel;
  arguments = held;
  std::vector<Parked> parked, again;
  for (blockIdx.z = 0; blockIdx.z < gridDim.z; blockIdx.z++)
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
      for (blockIdx.x = 0; blockIdx.x < gridDim.x && first_fault.empty(); blockIdx.x++) {
        rank = 0;
        if (blocks_in_cluster > 1) {
          run_cluster();  // and goes on to the last of its blocks
          continue;
        }
        begin_block();
        if (run_block()) parked.emplace_back();
      }
  const std::size_t blocks = std::size_t(gridDim.x) * gridDim.y * gridDim.z;
  while (!parked.empty() && first_fault.empty()) {
    if (parked.size() < blocks) return blame("blocks wait for others that have ended");
    for (auto &block : parked) {
      block.back();
      if (run_block()) again.emplace_back();
    }
    parked = std::move(again);
    again.clear();
  }
}

// What lies around a tensor may not be touched at all (cuda_on_cpu.py): the system stops whoever does, and we say so.
static sigjmp_buf escape;
static void stop(int) {
  blame("a read or a write outside of every tensor");
  siglongjmp(escape, 1);
}

void run(void (*kernel)(void **), void **held) {
  first_fault.clear();
  struct sigaction ours {}, before[2];
  ours.sa_handler = stop;
  sigaction(SIGSEGV, &ours, &before[0]);
  sigaction(SIGBUS, &ours, &before[1]);
  if (sigsetjmp(escape, 1) == 0) run_all(kernel, held);
  sigaction(SIGSEGV, &before[0], nullptr);
  sigaction(SIGBUS, &before[1], nullptr);
}

void copy(void *to, const void *from, int bytes, int take) {
  if (reinterpret_cast<std::size_t>(to) % bytes || reinterpret_cast<std::size_t>(from) % bytes)
    blame(("an address of an asynchronous copy is no multiple of its " + std::to_string(bytes) + " bytes").c_str());
  std::memset(to, 0xff, bytes);
  all[current].open.push_back({to, from, bytes, take});
}
void close() {
  all[current].groups.push_back(std::move(all[current].open));
  all[current].open.clear();
}
void arrive_all_but(std::size_t youngest) {
  auto &groups = all[current].groups;
  while (groups.size() > youngest) {
    for (const Copy &copy : groups.front()) {
      std::memset(copy.to, 0, copy.bytes);
      std::memcpy(copy.to, copy.from, copy.take);
    }
    groups.erase(groups.begin());
  }
}
}  // namespace fibers

// What g++ calls where an index leaves an array of a fixed length (-fsanitize=bounds), with where and which.
struct Bounds {
  const char *file;
  unsigned line, column;
};
extern "C" void __ubsan_handle_out_of_bounds(const Bounds *where, std::size_t index) {
  // One line less: the shim is included above the first line of the kernel.
  const std::string text = "line " + std::to_string(where->line - 1) + ": index " +
                           std::to_string(static_cast<long long>(index)) + " leaves its array";
  fibers::blame(text.c_str());
}

int __syncthreads_or(int mine) {
  fibers::votes[fibers::current] = mine;
  __syncthreads();
  int any = 0;
  for (const int vote : fibers::votes) any |= vote;
  __syncthreads();  // nobody votes again before all have counted
  return any;
}

static float handed_by(unsigned partner, float x) {
  fibers::handed[fibers::current] = x;
  __syncwarp();
  if (partner >= fibers::all.size() || fibers::all[partner].done) {
    fibers::blame("a shuffle takes from a thread that is not there");
    partner = fibers::current;
  }
  const float got = fibers::handed[partner];
  __syncwarp();  // nobody holds out the next number before all have taken this one
  return got;
}

float __shfl_xor_sync(unsigned, float x, int mask) { return handed_by(fibers::current ^ mask, x); }
float __shfl_sync(unsigned, float x, int lane) { return handed_by(fibers::current / 32 * 32 + lane, x); }

float __shfl_down_sync(unsigned, float x, unsigned step) {
  const unsigned me = fibers::current;
  return handed_by(me % 32 + step < 32 ? me + step : me, x);
}
