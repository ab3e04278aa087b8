/* Your own GPU, the device: found, or why not; kernels compiled, checked against the truth and timed. Nothing is timed that
   was not checked, and no dispatch is meant to take longer than `arithmetic.LONGEST_MS`.

   `kit.open(gpu, clock)` gives a session: .about, .prepare(kernel, source), .check(made, dims, seed),
   .once(made, dims), .plan(ms, isByClock), .sample(made, dims, plan), .free(), .stop(), .lost. A kernel that is refused throws a `kit.Wrong`, whose
   `reason` is one of compile, look, unwritten, outside, off, device; `stop()` makes everything under way throw `kit.Stopped`. */
(function () {
  "use strict";
  var kit = PercentOfPeak.yourGpu, arithmetic = kit.arithmetic;
  var PAD = 64;            /* words behind each buffer's end, which nobody may write and nobody should need */
  var POISON = 0x7fc0dead; /* a NaN that no arithmetic makes, where an answer belongs */
  var BEHIND = 0x7fc0feed; /* another one, behind the end of each input: who reads it makes a NaN, and not that one */
  var FEATURES = ["timestamp-query", "subgroups"];
  var SOFTWARE = /swiftshader|llvmpipe|lavapipe|software|basic render|\bcpu\b/i;
  var LEAST_STEP_US = 10;  /* starting a dispatch takes time too: a batch is a thousand of these at least */
  var COARSEST_US = 5000;  /* stamps that are further apart are of no use */
  var ALL = 2e7, MOST = 2e8; /* operations of the truth: below, all of it is worked out; above, as many chunks as fit */

  function Wrong(reason, message, line) {
    this.name = "Wrong";
    this.reason = reason;
    this.message = message;
    this.line = line || 0;
  }
  Wrong.prototype = Object.create(Error.prototype);
  function Stopped() {
    this.name = "Stopped";
    this.message = "stopped";
  }
  Stopped.prototype = Object.create(Error.prototype);

  /* The shortest step that the page's clock is seen to take, in microseconds. */
  function stepOfClock(clock) {
    var least = 100, seen = 0, asked = 0, before = clock(), began = before, now;
    while (seen < 20 && before - began < 60 && asked < 3e6) {
      asked += 1;
      now = clock();
      if (now > before) {
        least = Math.min(least, now - before);
        seen += 1;
        before = now;
      }
    }
    return 1e3 * least;
  }

  /* Why there is no GPU to be had, as the name of a line in words.js; or the adapter. */
  async function adapterOf(gpu) {
    if (!gpu) return window.isSecureContext ? "noWebGPU" : "notSecure";
    try {
      return await gpu.requestAdapter({ powerPreference: "high-performance" }) || "noAdapter";
    } catch (error) {
      return "noAdapter";
    }
  }

  async function open(gpu, clock) {
    var adapter = await adapterOf(gpu);
    if (typeof adapter === "string") return { missing: adapter };
    var info = adapter.info || {}, has = FEATURES.filter(function (name) { return adapter.features.has(name); }), device;
    try {
      device = await adapter.requestDevice({ requiredFeatures: has });
    } catch (error) {
      return { missing: "noDevice" };
    }
    var named = [info.vendor, info.architecture, info.device, info.description].filter(Boolean).join(" ");
    var session = { device: device, lost: "", stopped: false };
    session.about = {
      name: named || "a GPU that does not say its name", features: has,
      isSoftware: Boolean(info.isFallbackAdapter || adapter.isFallbackAdapter) || SOFTWARE.test(named),
      lanes: info.subgroupMinSize ? [info.subgroupMinSize, info.subgroupMaxSize] : [],
      clock_step_us: Math.max(1, stepOfClock(clock)), stamp_step_us: 0
    };
    device.lost.then(function (why) { session.lost = why.message || why.reason || "lost"; });
    work(session, device, clock);
    session.about.stamp_step_us = await session.stepOfStamps();
    return session;
  }

  function work(session, device, clock) {
    var stamps = null, kept = {};
    var little = navigator.deviceMemory && navigator.deviceMemory <= 4;
    var words = Math.min(device.limits.maxStorageBufferBindingSize, device.limits.maxBufferSize) / 4 - PAD - 4;
    if (little) words = Math.min(words, 1 << 23);

    function alive() {
      if (session.lost) throw new Wrong("device", session.lost);
      if (session.stopped) throw new Stopped();
    }
    function buffer(size, usage) { return device.createBuffer({ size: 4 * Math.ceil(size / 4) * 4, usage: usage }); }
    /* What a device says is wrong with what is done inside, as a refusal. */
    async function guarded(reason, work) {
      device.pushErrorScope("out-of-memory");
      device.pushErrorScope("validation");
      var made = null, thrown = null;
      try { made = await work(); } catch (error) { thrown = error; }
      var found = [await device.popErrorScope(), await device.popErrorScope()].filter(Boolean)[0];
      if (thrown) throw thrown;
      if (found) throw new Wrong(reason, found.message);
      return made;
    }

    /* Compiled: the pipelines of a kernel, in the order in which they run. */
    session.prepare = async function (name, source) {
      var kernel = kit.kernels[name], problem = kit.problemOf(name);
      alive();
      var faults = kit.look(source);
      if (faults.length) throw new Wrong("look", faults[0].what, faults[0].line);
      return guarded("compile", async function () {
        var module = device.createShaderModule({ code: source });
        var told = (await module.getCompilationInfo()).messages.filter(function (one) { return one.type === "error"; })[0];
        if (told) throw new Wrong("compile", told.message.split("\n")[0], told.lineNum);
        var kinds = problem.given(problem.first).map(function () { return "read-only-storage"; }).concat("storage");
        if (kernel.scratch) kinds.push("storage");
        var layout = device.createBindGroupLayout({
          entries: kinds.concat("uniform").map(function (type, i) {
            return { binding: i, visibility: GPUShaderStage.COMPUTE, buffer: { type: type } };
          })
        });
        var whole = device.createPipelineLayout({ bindGroupLayouts: [layout] }), pipelines = [], i;
        for (i = 0; i < kernel.entries.length; i++) {
          try {
            pipelines.push(await device.createComputePipelineAsync({ layout: whole, compute: { module: module, entryPoint: kernel.entries[i].entry } }));
          } catch (error) {
            throw new Wrong("compile", String(error.message).split("\n")[0]);
          }
        }
        return { name: name, kernel: kernel, problem: problem, layout: layout, pipelines: pipelines };
      });
    };

    /* The largest buffer that these sizes need, in words; and whether the device gives it. */
    session.holds = function (made, dims) {
      var sizes = made.problem.given(dims).concat(made.problem.out(dims).count, made.kernel.scratch ? made.kernel.scratch(dims) : 0);
      return Math.max.apply(null, sizes) <= words;
    };

    /* Buffers of a problem of these sizes, shared by its kernels; empty until `fill`. */
    async function place(made, dims) {
      var problem = made.problem, key = made.name.split("/")[0] + JSON.stringify(dims), usage = GPUBufferUsage;
      alive();
      var at = kept[key];
      if (!at) {
        at = await guarded("device", async function () {
          var count = problem.out(dims).count, sizes = new Uint32Array(problem.sizes.map(function (name) { return dims[name]; }));
          var fresh = {
            inputs: problem.given(dims).map(function (n) { return buffer(n + PAD, usage.STORAGE | usage.COPY_DST); }),
            out: buffer(count + PAD, usage.STORAGE | usage.COPY_DST | usage.COPY_SRC),
            sizes: buffer(4, usage.UNIFORM | usage.COPY_DST), scratch: {}, groups: {}
          };
          device.queue.writeBuffer(fresh.sizes, 0, sizes);
          return fresh;
        });
        kept[key] = at;
      }
      if (made.kernel.scratch && !at.scratch[made.name]) {
        at.scratch[made.name] = await guarded("device", async function () { return buffer(made.kernel.scratch(dims), usage.STORAGE); });
      }
      var list = at.inputs.concat(at.out, made.kernel.scratch ? at.scratch[made.name] : [], at.sizes);
      return {
        inputs: at.inputs, out: at.out,
        group: device.createBindGroup({ layout: made.layout, entries: list.map(function (one, i) { return { binding: i, resource: { buffer: one } }; }) })
      };
    }
    session.free = function () {
      Object.keys(kept).forEach(function (key) {
        kept[key].inputs.concat(kept[key].out, kept[key].sizes, Object.values(kept[key].scratch)).forEach(function (one) { one.destroy(); });
      });
      kept = {};
    };

    function dispatch(pass, made, at, dims) {
      pass.setBindGroup(0, at.group);
      made.kernel.entries.forEach(function (entry, i) {
        var grid = entry.grid(dims);
        pass.setPipeline(made.pipelines[i]);
        pass.dispatchWorkgroups(grid[0], grid[1], grid[2]);
      });
    }
    /* Words of a buffer, piece by piece. */
    async function read(from, pieces) {
      var size = pieces.reduce(function (sum, piece) { return sum + piece.count; }, 0), to = 0;
      var staging = buffer(size, GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST), encoder = device.createCommandEncoder();
      pieces.forEach(function (piece) {
        encoder.copyBufferToBuffer(from, 4 * piece.first, staging, 4 * to, 4 * piece.count);
        to += piece.count;
      });
      device.queue.submit([encoder.finish()]);
      try {
        await staging.mapAsync(GPUMapMode.READ);
      } catch (error) {
        throw new Wrong("device", session.lost || String(error.message));
      }
      var found = new Uint32Array(staging.getMappedRange().slice(0, 4 * size));
      staging.destroy();
      return found;
    }

    /* Once on inputs drawn from this seed, into a poisoned answer, against the truth: the error that was found. */
    session.check = async function (made, dims, seed) {
      var problem = made.problem, draw = arithmetic.draws(seed), at = await place(made, dims), shape = problem.out(dims);
      var inputs = problem.inputs(dims, draw), total = Math.ceil(shape.count / shape.width), i;
      inputs.forEach(function (host, n) {
        device.queue.writeBuffer(at.inputs[n], 0, host);
        device.queue.writeBuffer(at.inputs[n], 4 * host.length, new Uint32Array(PAD).fill(BEHIND));
      });
      var poison = new Uint32Array(Math.min(shape.count + PAD, 1 << 20)).fill(POISON);
      for (i = 0; i < shape.count + PAD; i += poison.length) {
        device.queue.writeBuffer(at.out, 4 * i, poison, 0, Math.min(poison.length, shape.count + PAD - i));
      }
      if (problem.zero) device.queue.writeBuffer(at.out, 0, new Uint32Array(shape.count));
      await guarded("device", async function () {
        var encoder = device.createCommandEncoder(), pass = encoder.beginComputePass();
        dispatch(pass, made, at, dims);
        pass.end();
        device.queue.submit([encoder.finish()]);
      });

      var each = problem.flops(dims) / total + shape.width, some = Math.max(4, Math.min(64, Math.floor(MOST / each)));
      var chunks = each * total <= ALL || total <= some ? arithmetic.shuffled(total, draw) :
        [0, total - 1].concat(Array.from({ length: some - 2 }, function () { return draw() % total; }));
      var pieces = chunks.map(function (chunk) {
        return { first: chunk * shape.width, count: Math.min(shape.width, shape.count - chunk * shape.width) };
      });
      var bits = await read(at.out, pieces.concat({ first: shape.count, count: PAD })), numbers = new Float32Array(bits.buffer);
      var size = bits.length - PAD, truth = new Float64Array(size), to = 0, empty = -1;
      for (i = 0; i < PAD; i++) {
        if (bits[size + i] !== POISON) throw new Wrong("outside", "word " + i + " behind its end");
      }
      chunks.forEach(function (chunk) {
        var right = problem.truth(inputs, dims, chunk);
        truth.set(right, to);
        to += right.length;
      });
      for (i = 0; i < size && empty < 0; i++) if (bits[i] === POISON) empty = i;
      if (empty >= 0) throw new Wrong("unwritten", "element " + where(pieces, empty));
      var error = arithmetic.worstError(numbers.subarray(0, size), truth, problem.apart ? shape.width : 0), allowed = problem.tolerance(dims);
      if (!(error <= allowed)) throw new Wrong("off", error.toPrecision(2) + " > " + allowed.toPrecision(2));
      return { error: error, allowed: allowed, seed: seed, elements: size, of: shape.count };
    };
    function where(pieces, at) {
      var i = 0;
      for (; at >= pieces[i].count; i++) at -= pieces[i].count;
      return pieces[i].first + at;
    }

    /* ---- time ---- */

    /* So many dispatches in one pass, between two stamps if asked for; the wait for it, and the stamps in nanoseconds. */
    async function batch(made, at, dims, count, isStamped) {
      alive();
      var encoder = device.createCommandEncoder(), i, found = null, pass;
      if (isStamped && !stamps) {
        stamps = {
          set: device.createQuerySet({ type: "timestamp", count: 2 }),
          resolved: device.createBuffer({ size: 16, usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC }),
          read: device.createBuffer({ size: 16, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST })
        };
      }
      pass = encoder.beginComputePass(isStamped ? { timestampWrites: { querySet: stamps.set, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 } } : {});
      for (i = 0; i < count; i++) dispatch(pass, made, at, dims);
      pass.end();
      if (isStamped) {
        encoder.resolveQuerySet(stamps.set, 0, 2, stamps.resolved, 0);
        encoder.copyBufferToBuffer(stamps.resolved, 0, stamps.read, 0, 16);
      }
      var commands = encoder.finish(), began = clock();
      device.queue.submit([commands]);
      await device.queue.onSubmittedWorkDone();
      var wall_us = 1e3 * (clock() - began);
      if (isStamped) {
        await stamps.read.mapAsync(GPUMapMode.READ);
        found = new BigUint64Array(stamps.read.getMappedRange().slice(0));
        stamps.read.unmap();
      }
      alive();
      return { wall_us: wall_us, stamps: found };
    }
    session.stepOfStamps = async function () {
      if (session.about.features.indexOf("timestamp-query") < 0) return 0;
      var all = [], i, one;
      for (i = 0; i < 6; i++) {
        one = await batch(null, null, null, 0, true);
        all.push(one.stamps[0], one.stamps[1]);
      }
      /* Some devices stamp no pass that does nothing, some answer with one number: their page's clock is read. */
      var step = arithmetic.stepOf(all);
      return all.indexOf(0n) < 0 && step < COARSEST_US ? step : 0;
    };
    /* How long one dispatch has its reader wait at most, in milliseconds: the second of two. */
    session.once = async function (made, dims) {
      var at = await place(made, dims), one;
      one = await batch(made, at, dims, 1, false);
      if (one.wall_us < 1e3 * arithmetic.LONGEST_MS) one = await batch(made, at, dims, 1, false);
      if (!(one.wall_us >= 0)) throw new arithmetic.Refused("the page's clock ran backwards");
      /* What a coarse clock does not show may have taken all of its step. */
      return Math.max(one.wall_us, session.about.clock_step_us) / 1e3;
    };
    /* How a kernel is sampled: by what, in steps of how long, how many dispatches together. */
    session.plan = function (once_ms, isByClock) {
      var about = session.about, isStamped = about.stamp_step_us > 0 && !isByClock;
      var step = isStamped ? Math.max(about.stamp_step_us, LEAST_STEP_US) : Math.max(about.clock_step_us, LEAST_STEP_US);
      var count = arithmetic.batchOf(1e3 * once_ms, step);
      /* Against a coarse clock several batches are waited for together. */
      var again = isStamped ? 1 : Math.max(1, Math.ceil(arithmetic.STEPS * step / (1e3 * once_ms * count)));
      return { by: isStamped ? "stamps" : "clock", step_us: step, count: count, again: Math.min(again, 10) };
    };
    session.sample = async function (made, dims, plan) {
      var at = await place(made, dims), sum = 0, i, one;
      var page_us = session.about.clock_step_us;
      for (i = 0; i < plan.again; i++) {
        one = await batch(made, at, dims, plan.count, plan.by === "stamps");
        sum += plan.by === "stamps" ?
          arithmetic.duration(one.stamps[0], one.stamps[1], one.wall_us, Math.max(plan.step_us, page_us)) :
          arithmetic.believed(one.wall_us, one.wall_us, page_us);
      }
      return sum / (plan.count * plan.again);
    };
    session.stop = function () { session.stopped = true; };
  }

  kit.Wrong = Wrong;
  kit.Stopped = Stopped;
  kit.open = open;
})();
