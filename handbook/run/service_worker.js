/* Keeps the run views when the network goes. The build fills in the list of files and a version made of what is in
   them: a new build is a new version, which is fetched whole and then replaces the old one. Each card's edition keeps its
   own, under a name of its own. */
"use strict";
const KEPT_AS = "%EDITION%run-";
const VERSION = KEPT_AS + "%VERSION%";
const FILES = "%FILES%";

self.addEventListener("install", function (event) {
  event.waitUntil(
    caches.open(VERSION)
      .then((kept) => kept.addAll(FILES.map((file) => new Request(file, { cache: "reload" }))))
      .then(() => self.skipWaiting())
  );
});

self.addEventListener("activate", function (event) {
  event.waitUntil(
    caches.keys()
      .then((names) => Promise.all(
        names.filter((name) => name.startsWith(KEPT_AS) && name !== VERSION).map((name) => caches.delete(name))))
      .then(() => self.clients.claim())
  );
});

/* What was kept is answered from here, at once; everything else goes to the network as if nobody stood between. */
self.addEventListener("fetch", function (event) {
  if (event.request.method !== "GET") return;
  event.respondWith(
    caches.open(VERSION)
      .then((kept) => kept.match(event.request, { ignoreSearch: true, ignoreVary: true }))
      .then((found) => found || fetch(event.request))
  );
});
