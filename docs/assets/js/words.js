/* Everything that scripts say to a reader, part by part, so that it is read in one place and can be translated there.
   A text with something to fill in is a function of it: other languages put it elsewhere, and count otherwise.
   Loaded before every other script of the site; `PercentOfPeak` is the one name the site adds to a page. */
var PercentOfPeak = window.PercentOfPeak || {};
PercentOfPeak.words = {
  /* site.js: boxes that scroll, the table of contents, lists that are one stop, the drawer */
  site: {
    formula: function (number) { return "Formula " + number; },
    table: function (number) { return "Table " + number; },
    buttonsOfCode: function (number) { return "Code " + number; },
    beyond: "Beyond the core",
    pages: "All pages",
    keys: "↑ ↓ walk on",
    walk: "One stop of the Tab key: arrow keys walk through this list."
  },

  /* popover.js: what is said of a marked word, a number and a tested sentence */
  popover: {
    ofWord: function (word) { return "What " + word + " means"; },
    ofValue: function (text) { return "Where " + text + " comes from"; },
    ofClaim: "What the build checks",
    kitchen: function (name) { return "In the kitchen: " + name; },
    toGlossary: "In the glossary",
    median: function (n) { return "median of " + n; },
    spread: function (share) { return "spread " + share; },
    madeOf: "Made of",
    measured: function (card, date) { return "Measured on " + card + ", " + date; },
    workedOut: "Worked out when the site was built",
    how: { computed: "Worked out by hand", given: "Given, by a source or by the page" },
    toLedger: "Its row in the ledger",
    condition: "As it is written in the page",
    toHowItFails: "What happens when it fails",
    keys: "← and → to the other marks · Enter to the link · Tab to the next section · Esc closes"
  },

  /* ledger.js: the filter */
  ledger: {
    rows: function (all) { return all + " rows"; },
    rowsOf: function (left, all) { return left + " of " + all + " rows"; }
  },

  /* handbook/run/run.js: the mentor's watch; the words that stay are in run.html */
  run: {
    min: function (minutes) { return minutes + " min"; },
    minNot: function (real, planned) { return real + ", not " + planned + " min"; },
    minutes: function (minutes) { return minutes + (minutes === 1 ? " minute" : " minutes"); },
    late: function (minutes) { return this.minutes(minutes) + " late"; },
    early: function (minutes) { return this.minutes(minutes) + " early"; },
    onTime: "on time",
    step: function (number, title) { return "Step " + number + ": " + title; },
    stepOf: function (number, all) { return "step " + number + " of " + all; },
    skipped: "skipped",
    next: "Next",
    end: "End the session",
    pause: "Break",
    beforeTheStart: "before the start",
    isOver: "The session is over.",
    over: "Over",
    itWas: function (began, ended, drift) { return "It began at " + began + " and ended at " + ended + ", " + drift + "."; },
    until: function (time) { return "until " + time; },
    overIts: function (minutes) { return "over its " + this.minutes(minutes); },
    leftOf: function (minutes) { return "left of " + this.minutes(minutes); },
    to: function (time) { return "to " + time; },
    plan: function (time) { return "plan " + time; },
    startsIn: function (left) { return "in " + left; },
    nothingToCut: "Nothing is left to cut. Say what they can read, and close well.",
    cuts: function (won, missing) {
      return "Cut, in this order: that saves " + this.minutes(won) + (missing > 0 ? ", " + missing +
        (missing === 1 ? " is" : " are") + " missing. Say at the door what they can read." : ".");
    },
    saves: function (minutes, all) { return "saves " + this.minutes(minutes) + (all ? ", the whole step" : ""); },
    plannedToEnd: function (planned, expected) {
      return "planned to end at " + planned + (expected ? ", now expected at " + expected : "");
    },
    untilWeBegin: "until we begin",
    left: "left",
    weGoOn: "we go on",
    backAt: function (time) { return "back at " + time; },
    breakAt: function (time) { return "Break at " + time; },
    weEndAt: function (time) { return "We end at " + time; },
    allForToday: "That was all for today.",
    weBeginSoon: "We begin soon.",
    sleeps: "This browser lets the screen sleep: keep it awake in the settings of the device.",
    copied: "Copied.",
    selected: "Selected: copy it by hand.",
    kept: "Kept on this device: it needs no network now.",
    newer: "A newer version of this page is here: reload when it suits you. Nothing is lost.",
    keepsNothing: "This browser keeps nothing: a reload will forget the start."
  },

  /* handbook/run/calendar.js: what is wrong with a date, and what was made */
  calendar: {
    days: ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"],
    noZone: function (typed, meant) {
      return (typed ? typed + " is not a time zone that this browser knows. " : "") + "Write its name, " +
        (meant ? "for example " + meant : "such as Europe/Berlin") + ".";
    },
    chooseMonday: "Choose the Monday of the first week.",
    chooseDay: "Choose the day of the session.",
    noMonday: function (date, weekday, monday) {
      return date + " is a " + this.days[weekday] + ". The plan begins on a Monday, for example " + monday + ".";
    },
    sayWhen: "Say when it starts, in hours and minutes.",
    noSuchTime: function (time, day, zone) {
      return time + " does not exist on " + day + " in " + zone + ": the clocks go forward. Choose another start.";
    },
    made: function (file, entries, date, time, zone, utc) {
      return file + ": " + entries + (entries === 1 ? " entry" : " entries") + ". It begins on " + date + " at " + time +
        " in " + zone + ", " + utc + " UTC.";
    },
    madeOfDays: function (file, entries, date) {
      return file + ": " + entries + " entries, a day each. The first is on " + date + ".";
    }
  },

  /* progress.js, and what predict.js says at a lab */
  progress: {
    file: "percent-of-peak-progress.json",
    not_ours: "This file is not one that this course has saved.",
    lab_done: "I have done this lab",
    lab_kept: "Kept in this browser, and nowhere else."
  },

  /* predict.js: a prediction, before and after it is made; {choice} is the right one */
  predict: {
    call: "That is my call",
    right: "right",
    yours: "your call",
    rightAndYours: "your call, and right",
    calledRight: "You called it.",
    calledWrong: "Not this time. It is: {choice}. The reason is below.",
    shown: "Shown, not called.",
    waits: "Noted. This page still waits for its numbers: nobody knows yet.",
    seeBelow: "Noted. What this card says is below.",
    wereYouRight: "Were you right?",
    iWas: "I was",
    iWasNot: "I was not",
    saidRight: "You called it.",
    saidWrong: "Not this time. Now you know it.",
    /* the bar over what waits; behind it stand the link, `orShow` and the button */
    chart: "The chart here gives an answer away.",
    table: "The table here gives an answer away.",
    output: "What the cell printed gives an answer away.",
    lines: "The lines here give an answer away.",
    toYourCall: "Make your call",
    orShow: " first.",
    show: "Show me",
    /* the page's end, and the next one's head */
    tally: function (right, made, all) {
      return "You called " + right + " of " + made + " right" + (made < all ? "; this page has " + all + "." : ".");
    },
    comesBack: "What you missed comes back once, on the next page you read: a second look is what makes it stay.",
    counts: function (predictions) {
      return "This page counts as read once you have seen its end and spent a quarter of its minutes on it" +
        (predictions ? ", or called all its predictions." : ".");
    },
    isRead: "This page counts as read.",
    again: "A question that comes back",
    missedOn: "Here it is once more, with what you know by now: a question from",
    ofMissed: function (number, all) { return "This is " + number + " of " + all + "."; },
    rightNow: "Right, this time.",
    wrongAgain: "It is: {choice}. The page linked above says why.",
    next: "The next one",
    notNow: "Not now"
  },

  /* home.js: where you are on the road */
  home: {
    label: "Where you are",
    goOn: function (title) { return "Go on: " + title; },
    read: "read",
    begun: "begun",
    predictions: function (made, all) { return made + " of " + all + " predictions"; },
    lab: "lab done",
    labs: function (done, all) { return done + " of " + all + " labs done"; },
    pages: function (done, all) { return done + " of " + all + " pages read"; },
    right: function (right, made) { return right + " of " + made + " predictions right"; },
    kept: "This is kept in your browser and sent nowhere.",
    notKept: "Your browser keeps nothing here: save it as a file before you close the page.",
    none: "What you read, predict and type is drawn on this road. A page counts as read at its end, after a quarter of its minutes, or with all its predictions called. It is kept in your browser and sent nowhere.",
    save: "Save as a file",
    load: "Read a file",
    loaded: "Read. What was here before is still here.",
    forget: "Forget all of it",
    sure: "Forget where you are on this road? There is no way back."
  },

  /* paper.js: the heading over the answers of a printed page */
  paper: {
    answers: "Answers"
  },

  /* search.js: the box, and what it found */
  search: {
    name: "Search",
    field: "Search the course",
    close: "Close",
    hint: "A technical term, an error message, a question.",
    loading: "One moment …",
    failed: "The search could not be loaded.",
    nothing: function (question) { return "Nothing here says “" + question + "”."; },
    found: function (number) { return number === 1 ? "1 place" : number + " places"; },
    ofCard: function (card) { return "Searched as it is on the " + card + ": a number in an excerpt is that card's."; },
    forMentors: "for mentors"
  },

  /* explorable.js: pictures with knobs. What each of them says stands in its page. */
  explorable: {
    computed: "Numbers in bold are computed in your browser; linked ones are in the ledger.",
    reset: "Start again",
    keep: "Keep this row",
    previous: "Previous",
    next: "Next",
    play: "Play",
    pause: "Pause",
    numbers: function (low, high) { return "Write " + low + " to " + high + " numbers, with commas between them; -inf is minus infinity."; }
  }
};
