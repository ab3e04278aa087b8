/* Your own GPU: what its scripts say. Beside the other scripts' words, in a file of its own, since one page needs them. Units
   and heads of the tables are the page's. */
PercentOfPeak.words.yourGpu = {
  look: "Look for my GPU",
  stop: "Stop",
  run: "Check, then time",
  again: "Once more",
  needsCall: "Call it first: choose an answer above.",
  needsRoofs: "Your roofs come first: station one.",
  found: function (name) { return "Found: " + name + "."; },
  software: "This is your processor, not a GPU: the browser works WGSL out in software. What you measure below is the processor.",
  features: function (has, lanes) {
    return (has.indexOf("subgroups") >= 0 ? "Subgroups: yes, of " + (lanes[0] === lanes[1] ? lanes[0] : lanes.join(" to ")) + " lanes." : "Subgroups: no.") +
      (has.indexOf("timestamp-query") >= 0 ? " Time stamps: yes." : " Time stamps: no, so the page's clock is read.");
  },
  missing: {
    noWebGPU: "This browser has no WebGPU. A current Chrome, Edge, Safari or Firefox has it on most machines; below is what our card did.",
    notSecure: "A browser gives WebGPU only to a page from https, from this machine or from a folder. Open it so; below is what our card did.",
    noAdapter: "The browser has WebGPU and finds nothing to run on: look into its settings for hardware acceleration, and for a newer driver. Below is what our card did.",
    noDevice: "The GPU is there and was not given: close other pages that use it, then load this page again. Below is what our card did."
  },
  lost: "The GPU is gone: the driver took it back. Load this page again; choose a smaller size if it happens again.",
  stopped: "Stopped. What was measured before stays.",
  broken: function (message) { return "Something else went wrong: " + message; },
  checking: function (what) { return "Checking " + what + " against the truth."; },
  sizing: function (what) { return "Looking for a size: " + what + "."; },
  round: function (number, all) { return "Round " + number + " of " + all + ", in an order drawn anew."; },
  rechecking: "Checking again, on numbers drawn anew.",
  done: function (count) { return "Done: checked, timed in " + count + " rounds, checked again."; },
  refused: {
    compile: function (why, line) { return "Refused, it does not compile" + (line ? ", line " + line : "") + ": " + why; },
    barrier: function (name, line) { return "Refused, line " + line + ": " + name + " is written by some threads and read by others with no barrier between."; },
    race: function (name, line) { return "Refused, line " + line + ": all threads write " + name + " at one place, without an atomic."; },
    unwritten: function (why) { return "Refused: " + why + " was never written."; },
    outside: function (why) { return "Refused: it wrote " + why + "."; },
    off: function (why) { return "Refused: an answer is off by more than rounding explains (" + why + ")."; },
    device: function (why) { return "The GPU could not do it: " + why; },
    time: function (why) { return "Time refused: " + why + "."; },
    large: "Refused: one dispatch takes too long here, at the smallest size already."
  },
  lacking: function (feature) { return "Not on this GPU: it has no " + feature + "."; },
  above: "above your roof: a cache helped, or the roof was measured in a worse moment",
  changed: "changed by you",
  came: function (text, value) { return "Your GPU says: " + value + ", so " + text + "."; },
  called: "That is what you called.",
  missed: function (text) { return "You called: " + text + "."; },
  cannotTell: "One of the two that the question is about did not run, so nothing answers it.",
  keptFrom: function (date) { return "Kept on this device since " + date + "; sent nowhere."; },
  readOrChange: "Read these kernels, or change them",
  sourceOf: function (name) { return "WGSL of " + name; },
  asItWas: "As it was",
  change: "What you change here is looked at, compiled, checked and timed as the rest is. It lasts as long as the page is open.",
  saveJSON: "Save the numbers (JSON)",
  saveSVG: "Save the drawing (SVG)",
  forget: "Forget all of it",
  drawing: function (points) { return points ? "Your roofline, with " + points + " kernels under it; the tables above have the same numbers." : "An empty roofline: nothing is measured yet."; }
};
