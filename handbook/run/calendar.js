/* Makes a calendar file (.ics, RFC 5545) of what the page knows and what is typed: a date, a start, a time zone. Used by
   the run views for one session, by the page on the cohort's calendar for all of them, and by the year for its weeks. No network, no modules. */
(function () {
  "use strict";
  const MINUTE = 60000, DAY = 1440 * MINUTE;
  const words = () => PercentOfPeak.words.calendar;   /* on a page of the site they are loaded after this script */

  /* ---- days and instants: a day is its midnight in UTC, which no zone and no summer time can move ---- */

  const dayOf = (text) => Date.parse(text + "T00:00:00Z");
  const asDay = (day) => new Date(day).toISOString().slice(0, 10);
  const asTime = (moment) => new Date(moment).toISOString().slice(11, 16);
  const asWritten = (moment) => new Date(moment).toISOString().replace(/[-:]|\.\d+/g, "");

  /* What the clock on the wall shows in a zone, as if it were UTC. Throws on a name that is no zone. */
  function wallIn(zone) {
    const format = new Intl.DateTimeFormat("en-u-ca-gregory-nu-latn", { timeZone: zone, hourCycle: "h23", year: "numeric",
      month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" });
    return function (moment) {
      const part = {};
      format.formatToParts(moment).forEach((one) => { part[one.type] = Number(one.value); });
      return Date.UTC(part.year, part.month - 1, part.day, part.hour, part.minute, part.second);
    };
  }

  /* The instant at which the wall shows this; the first of two when the clocks go back, null when it never shows it. */
  function instantOf(shown, wall) {
    const found = [shown - DAY, shown, shown + DAY].map((near) => shown - (wall(near) - near))
      .filter((moment) => wall(moment) === shown);
    return found.length ? Math.min(...found) : null;
  }

  /* ---- the file ---- */

  const escaped = (text) => text.replace(/[\\;,]/g, "\\$&").replace(/\r?\n/g, "\\n");

  /* A line has at most 75 octets; what is longer goes on in the next one, after a space. No letter is cut in two, and
     none from the backslash before it: a calendar that reads line by line loses both. */
  function folded(line) {
    const octets = new TextEncoder();
    let out = "", room = 75;
    for (const letter of line.match(/\\?[^]/gu)) {
      const size = octets.encode(letter).length;
      if (size > room) {
        out += "\r\n ";
        room = 74;
      }
      out += letter;
      room -= size;
    }
    return out;
  }

  /* Two cohorts of one day stand side by side in a calendar: the hour and the zone are part of who an event is. */
  function identity(entry, typed) {
    const place = typed.zone.name.toLowerCase().replaceAll("/", "-");
    return entry.name + "-" + typed.date + "@" + typed.time.replace(":", "") + "." + place + ".percent-of-peak";
  }

  function eventLines(entry, typed, stamp) {
    const lines = ["BEGIN:VEVENT", "UID:" + identity(entry, typed), "DTSTAMP:" + stamp,
      "SUMMARY:" + escaped(entry.title), "DESCRIPTION:" + escaped(entry.text)];
    if (entry.minutes) {
      lines.push("DTSTART:" + asWritten(entry.start), "DTEND:" + asWritten(entry.start + entry.minutes * MINUTE));
    } else {   /* a date to keep, no time that is taken */
      lines.push("DTSTART;VALUE=DATE:" + asDay(entry.start).replaceAll("-", ""),
        "DTEND;VALUE=DATE:" + asDay(entry.start + DAY).replaceAll("-", ""), "TRANSP:TRANSPARENT");
    }
    return lines.concat("END:VEVENT");
  }

  function fileOf(plan, entries, typed) {
    const stamp = asWritten(Date.now());
    const lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Percent of Peak//calendar//EN"]
      .concat(plan.title ? "X-WR-CALNAME:" + escaped(plan.title) : [],
        ...entries.map((entry) => eventLines(entry, typed, stamp)), "END:VCALENDAR");
    return lines.map(folded).join("\r\n") + "\r\n";
  }

  /* ---- what was typed ---- */

  function wrong(field, message) {
    return Object.assign(new Error(message), { field: field });
  }

  let zones = [];
  try {
    zones = Intl.supportedValuesOf("timeZone");
  } catch { /* an older browser: the zone is typed without a list */ }

  function zoneOf(text) {
    const name = text.trim().replace(/ +/g, "_");
    try {
      if (!/^[a-z]/i.test(name)) throw new RangeError("an offset knows no summer time");
      return { name: name, wall: wallIn(name) };
    } catch {
      const meant = zones.find((zone) => zone.toLowerCase().endsWith("/" + name.toLowerCase()));
      throw wrong("zone", words().noZone(name && text.trim(), meant));
    }
  }

  function read(form, plan) {
    const date = form.elements.date.value;
    const time = form.elements.time ? form.elements.time.value.slice(0, 5) : "00:00";   /* all entries last a day */
    if (!/^20\d\d-\d\d-\d\d$/.test(date)) {
      throw wrong("date", plan.monday ? words().chooseMonday : words().chooseDay);
    }
    const weekday = new Date(dayOf(date)).getUTCDay();
    if (plan.monday && weekday !== 1) {
      throw wrong("date", words().noMonday(date, weekday, asDay(dayOf(date) - (weekday + 6) % 7 * DAY)));
    }
    if (!/^\d\d:\d\d$/.test(time)) throw wrong("time", words().sayWhen);
    return { date: date, time: time, zone: zoneOf(form.elements.zone ? form.elements.zone.value : "UTC") };
  }

  /* Entries with their beginning: an instant, or a day. */
  function dated(plan, typed) {
    const [hours, minutes] = typed.time.split(":").map(Number);
    const site = isPublished() ? new URL(plan.root, location.href).href : "";
    return plan.entries.map(function (entry) {
      const day = dayOf(typed.date) + entry.day * DAY;
      let start = day;
      if (entry.minutes) {
        start = instantOf(day + (60 * hours + minutes) * MINUTE, typed.zone.wall);
        if (start === null) {
          throw wrong("time", words().noSuchTime(typed.time, asDay(day), typed.zone.name));
        }
        start += entry.after * MINUTE;
      }
      return { ...entry, start: start, text: entry.text + (site && entry.page ? "\n" + site + entry.page : "") };
    });
  }

  /* From a folder or from this machine alone, a link in a calendar leads nobody anywhere. */
  function isPublished() {
    return /^https?:$/.test(location.protocol) && !/^(localhost|127\.|\[::1\])/.test(location.hostname);
  }

  function download(name, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/calendar;charset=utf-8" }));
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  /* ---- the form ---- */

  document.querySelectorAll(".calendar[data-plan]").forEach(function (place) {
    const plan = JSON.parse(document.getElementById(place.dataset.plan).textContent).calendar;
    const form = place.querySelector("form");
    const complaint = form.querySelector(".wrong"), made = form.querySelector(".made");
    form.hidden = false;
    place.querySelector(".without").hidden = true;
    if (form.elements.zone) form.elements.zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
    form.querySelectorAll("datalist").forEach((list) => list.append(...zones.map(function (zone) {
      const option = document.createElement("option");
      option.value = zone;
      return option;
    })));

    function refuse(error) {
      if (!error.field) throw error;
      form.elements[error.field].setAttribute("aria-invalid", "true");
      form.elements[error.field].focus();
      complaint.textContent = error.message;
      complaint.hidden = false;
    }

    form.addEventListener("submit", function (event) {
      event.preventDefault();
      complaint.hidden = true;
      made.textContent = "";
      form.querySelectorAll("[aria-invalid]").forEach((field) => field.removeAttribute("aria-invalid"));
      try {
        const typed = read(form, plan);
        const entries = dated(plan, typed);
        const name = plan.file + "-" + typed.date + ".ics";
        download(name, fileOf(plan, entries, typed));
        const first = entries.find((entry) => entry.minutes);
        made.textContent = first
          ? words().made(name, entries.length, typed.date, typed.time, typed.zone.name, asTime(first.start))
          : words().madeOfDays(name, entries.length, typed.date);
      } catch (error) {
        refuse(error);
      }
    });
  });
})();
