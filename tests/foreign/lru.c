/* LRU in C, as a subject of the suite: one list of all chunks, editions v0.19 to v0.22.
 *
 *     cc -O2 -o lru lru.c && cachelaw certify exec:./lru
 *
 * It speaks the protocol of specs/INTERPRETING.md, "Policies in other languages". The reader of
 * JSON below reads what the suite writes, and no more: members in the order that is promised
 * there, and strings without escapes. -DHEAD_FIRST makes it wrong: of a batch, it uses the head
 * first and the tail last, so that the tail outlives the head.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *check(void *memory) {
  if (memory == NULL) abort();
  return memory;
}

/* --- The list: all chunks, least recently used first --- */

typedef struct {
  char *key;
  long slot, ref_cnt;
} Chunk;

typedef struct Cache {
  long id;
  size_t count, room;
  Chunk *chunks;
  struct Cache *next;
} Cache;

static size_t place_of(const Cache *cache, const char *key) {
  size_t at = 0;
  while (at < cache->count && strcmp(cache->chunks[at].key, key) != 0) at++;
  return at; /* the count, if it is absent */
}

static Chunk take_out(Cache *cache, size_t at) {
  Chunk taken = cache->chunks[at];
  cache->count--;
  memmove(cache->chunks + at, cache->chunks + at + 1, (cache->count - at) * sizeof taken);
  return taken;
}

static void put_last(Cache *cache, Chunk chunk) {
  if (cache->count == cache->room) {
    cache->room = 2 * cache->room + 4;
    cache->chunks = check(realloc(cache->chunks, cache->room * sizeof chunk));
  }
  cache->chunks[cache->count++] = chunk;
}

static void use(Cache *cache, const char *key) {
  size_t at = place_of(cache, key);
  if (at < cache->count) put_last(cache, take_out(cache, at));
}

static void forget(Cache *cache, size_t at) { free(take_out(cache, at).key); }

static void clear(Cache *cache) {
  while (cache->count > 0) forget(cache, cache->count - 1);
}

/* --- Instances --- */

static Cache *caches;

static Cache *cache_of(long id) {
  Cache *cache = caches;
  while (cache != NULL && cache->id != id) cache = cache->next;
  return cache;
}

static Cache *new_cache(long id) {
  Cache *cache = check(calloc(1, sizeof *cache));
  cache->id = id;
  cache->next = caches;
  return caches = cache;
}

static void drop(long id) {
  for (Cache **link = &caches; *link != NULL; link = &(*link)->next)
    if ((*link)->id == id) {
      Cache *cache = *link;
      *link = cache->next;
      clear(cache);
      free(cache->chunks);
      free(cache);
      return;
    }
}

/* --- Reading what the suite writes --- */

static char *at;

static void expect(const char *text) {
  if (strncmp(at, text, strlen(text)) != 0) {
    fprintf(stderr, "lru: expected %s at: %.40s\n", text, at);
    exit(2);
  }
  at += strlen(text);
}

static bool follows(const char *text) {
  if (strncmp(at, text, strlen(text)) != 0) return false;
  at += strlen(text);
  return true;
}

static long number(void) { return strtol(at, &at, 10); }

static char *string(void) {
  expect("\"");
  char *start = at;
  at += strcspn(at, "\"");
  if (*at == '\0') expect("\"");
  *at++ = '\0';
  return start;
}

static char **strings(size_t *count) {
  char **list = NULL;
  *count = 0;
  expect("[");
  while (!follows("]")) {
    if (*count > 0) expect(",");
    list = check(realloc(list, (*count + 1) * sizeof *list));
    list[(*count)++] = string();
  }
  return list;
}

/* --- Calls --- */

static void call_get(Cache *cache) {
  size_t place = place_of(cache, string());
  if (place < cache->count)
    printf("%ld", cache->chunks[place].slot);
  else
    printf("null");
}

static void call_insert(Cache *cache) {
  Chunk chunk = {check(strdup(string())), 0, -1};
  expect(",");
  chunk.slot = number();
  put_last(cache, chunk);
}

static void call_ref_cnt(Cache *cache) {
  size_t place = place_of(cache, string());
  expect(",");
  long ref_cnt = number();
  if (place < cache->count) cache->chunks[place].ref_cnt = ref_cnt;
}

static void call_remove(Cache *cache) {
  size_t place = place_of(cache, string());
  if (place < cache->count) forget(cache, place);
}

static void call_touch(Cache *cache) {
  size_t count;
  char **keys = strings(&count);
#ifdef HEAD_FIRST
  for (size_t i = 0; i < count; i++) use(cache, keys[i]);
#else
  for (size_t i = count; i > 0; i--) use(cache, keys[i - 1]); /* the head ends most recent */
#endif
  free(keys);
}

static bool may_go(const Chunk *chunk, char **keep, size_t kept) {
  bool may = chunk->ref_cnt == 0;
  for (size_t i = 0; i < kept && may; i++) may = strcmp(chunk->key, keep[i]) != 0;
  return may;
}

static void call_evict(Cache *cache) {
  size_t kept, wanted = (size_t)number(), able = 0;
  expect(",");
  char **keep = strings(&kept);
  for (size_t i = 0; i < cache->count; i++) able += may_go(&cache->chunks[i], keep, kept);
  if (able < wanted) {
    printf("null");
  } else {
    size_t place = 0, gone = 0;
    printf("[");
    while (gone < wanted) {
      Chunk *chunk = &cache->chunks[place];
      if (may_go(chunk, keep, kept)) {
        printf("%s[\"%s\",%ld]", gone++ > 0 ? "," : "", chunk->key, chunk->slot);
        forget(cache, place);
      } else {
        place++;
      }
    }
    printf("]");
  }
  free(keep);
}

static void carry_out(Cache *cache) {
  expect("[");
  const char *method = string();
  bool more = follows(","); /* clear has no arguments */
  if (strcmp(method, "get") == 0) {
    call_get(cache);
  } else if (strcmp(method, "evict") == 0) {
    call_evict(cache);
  } else {
    if (strcmp(method, "insert") == 0) call_insert(cache);
    if (strcmp(method, "ref_cnt") == 0) call_ref_cnt(cache);
    if (strcmp(method, "remove") == 0) call_remove(cache);
    if (strcmp(method, "touch") == 0) call_touch(cache);
    if (!more) clear(cache);
    printf("null");
  }
  expect("]");
}

static void answer(char *line) {
  at = line;
  expect("{");
  if (follows("\"drop\":[")) {
    do drop(number());
    while (follows(","));
    expect("],");
  }
  expect("\"id\":");
  long id = number();
  Cache *cache = cache_of(id);
  if (follows(",\"new\":{")) {
    at += strcspn(at, "}"); /* this list needs neither edition nor capacity */
    expect("}");
    cache = new_cache(id);
  }
  expect(",\"calls\":[");
  printf("{\"results\":[");
  for (bool first = true; !follows("]"); first = false) {
    if (!first) {
      expect(",");
      printf(",");
    }
    carry_out(cache);
  }
  printf("]}\n");
}

int main(void) {
  char *line = NULL;
  size_t room = 0;
  printf("{\"cachelaw\":1,\"editions\":[\"v0.19\",\"v0.20\",\"v0.22\"],\"profile\":\"lru\"}\n");
  fflush(stdout);
  while (getline(&line, &room, stdin) >= 0) {
    answer(line);
    fflush(stdout);
  }
  free(line);
  while (caches != NULL) drop(caches->id);
  return 0;
}
