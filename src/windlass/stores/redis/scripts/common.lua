-- What every script begins with: the clock, names of keys, records, and writes gathered into few commands.
--
-- KEYS[1] is what all keys of the namespace begin with, hash tag included. No script raises after its first write:
-- Redis does not undo what a script has done. Removals are written first: they are allowed when memory is full, and
-- what comes after an allowed write is allowed too, so that work at hand can end while new work is refused.
local P = KEYS[1]
local SEP = '\31'
local MOST = 1000
local MOST_LINES = 100
local COUNTS, LEASES, DUE, RECORD = P .. 'counts', P .. 'leases', P .. 'due', P .. 'j:'

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- Numbers as text, made once in a call: making them is slower than all else that is done with a field.
local digits = setmetatable({}, {__index = function(known, n)
  local text = string.format('%.0f', n)
  known[n] = text
  return text
end})
local NOW = digits[now]

-- The places of a record's fields; records.py has the same list. What moves change stands first and is taken apart in one
-- step; the rest is left in one piece, REST, at whose end the history grows.
local STATUS, RUN_AT, QUEUED_AT, UPDATED_AT, CREATED_AT, QUEUE, TYPE, PRIORITY = 1, 2, 3, 4, 5, 6, 7, 8
local ATTEMPTS, CRASHES, TOKEN, WORKER, EXPIRES_AT, STARTED_AT, CANCEL_AT, FINISHED_AT = 9, 10, 11, 12, 13, 14, 15, 16
local DURATION, WAIT, KEY, KEY_QUEUED, KEY_RUNNING, LIMIT_KEY, LIMIT, BLOCKED_BY = 17, 18, 19, 20, 21, 22, 23, 24
local SCHEDULE, PROGRESS, RESULT, ERROR, MOVES, APART, REST = 25, 26, 27, 28, 29, 30, 31
-- Only where a record is taken apart as a whole:
local TICK, PARENT, USER, ENTITY, ENTITY_ID, CORRELATION, IDEMPOTENT, PAYLOAD = 31, 32, 33, 34, 35, 36, 37, 38
local PARTS = '^' .. string.rep('(%Z*)%z', REST - 1) .. '(.*)$'

local WAITS = {s = true, q = true, b = true, r = true}
local ENDED = {d = true, f = true, c = true}

local function split(text)
  local fields, n, from = {}, 0, 1
  local find, sub = string.find, string.sub
  while true do
    local at = find(text, '\0', from, true)
    n = n + 1
    if not at then
      fields[n] = sub(text, from)
      return fields
    end
    fields[n] = sub(text, from, at - 1)
    from = at + 1
  end
end

local function joined(job)
  return table.concat(job, '\0')
end

local function parts_of(text)
  return {string.match(text, PARTS)}
end

local function whole(job)
  return split(joined(job))
end

-- What this call has read and is about to write; `texts` is how records were last written.
local jobs, changed, texts = {}, {}, {}
local removals, additions, tallies = {}, {}, {}
local lines, queues_behind = {}, {}

local function load(ids)
  for first = 1, #ids, MOST do
    local keys, n = {}, 0
    for at = first, math.min(first + MOST - 1, #ids) do
      n = n + 1
      keys[n] = RECORD .. ids[at]
    end
    local found = redis.call('MGET', unpack(keys))
    for at = 1, n do
      local id = ids[first + at - 1]
      if found[at] and jobs[id] == nil then
        jobs[id] = parts_of(found[at])
      end
    end
  end
end

local function job_of(id)
  if jobs[id] == nil then
    local found = redis.call('GET', RECORD .. id)
    jobs[id] = found and parts_of(found) or false
  end
  return jobs[id]
end

local function remove(key, member)
  local list = removals[key]
  if not list then
    removals[key] = {member}
  else
    list[#list + 1] = member
  end
end

local function add(key, score, member)
  local list = additions[key]
  if not list then
    additions[key] = {score, member}
  else
    local n = #list
    list[n + 1] = score
    list[n + 2] = member
  end
end

local function tally(key, field, n)
  local fields = tallies[key]
  if not fields then
    fields = {}
    tallies[key] = fields
  end
  fields[field] = (fields[field] or 0) + n
end

-- Names are made once in a call: most of its jobs share them.
local names, line_names = {}, {}

local function shared(tree, one, two, three, make)
  local by_two = tree[one]
  if not by_two then
    by_two = {}
    tree[one] = by_two
  end
  local by_three = by_two[two]
  if not by_three then
    by_three = {}
    by_two[two] = by_three
  end
  local made = by_three[three]
  if not made then
    made = make(one .. SEP .. two .. SEP .. three)
    by_three[three] = made
  end
  return made
end

local function named_view(name)
  return {name = name, view = P .. 'v:' .. name, ends = {}}
end

local function names_of(job)
  return shared(names, job[STATUS], job[QUEUE], job[TYPE], named_view)
end

local function named_line(name)
  return {name = name, key = P .. 'w:' .. name}
end

local function line_of(job)
  local line = shared(line_names, job[QUEUE], job[TYPE], job[PRIORITY], named_line)
  lines[line.name] = job[PRIORITY]
  return line.key
end

-- Takes a job out of every list its status put it in.
local function leave(id, job)
  local status = job[STATUS]
  local known = names_of(job)
  remove(known.view, id)
  tally(COUNTS, known.name, -1)
  if status == 'q' then
    remove(line_of(job), id)
  elseif status == 'p' then
    remove(LEASES, id)
    if job[CANCEL_AT] ~= '' then
      remove(P .. 'cancels', id)
    end
    if job[LIMIT_KEY] ~= '' then
      tally(P .. 'slots', job[LIMIT_KEY], -1)
    end
  elseif status == 's' or status == 'r' then
    remove(DUE, id)
  elseif status == 'b' then
    remove(P .. 'b:' .. job[BLOCKED_BY], id)
    queues_behind[job[BLOCKED_BY]] = true
  elseif ENDED[status] then
    remove(P .. 'ended:' .. status .. SEP .. job[QUEUE], id)
  end
end

-- Puts a job into the lists of its new status.
local function enter(id, job, status)
  job[STATUS] = status
  changed[id] = job
  local known = names_of(job)
  add(known.view, '0', id)
  tally(COUNTS, known.name, 1)
  if status == 'q' then
    add(line_of(job), job[RUN_AT], id)
  elseif status == 'p' then
    add(LEASES, job[EXPIRES_AT], id)
    if job[LIMIT_KEY] ~= '' then
      tally(P .. 'slots', job[LIMIT_KEY], 1)
    end
  elseif status == 's' or status == 'r' then
    add(DUE, job[RUN_AT], id)
  elseif status == 'b' then
    add(P .. 'b:' .. job[BLOCKED_BY], job[QUEUED_AT], id)
    queues_behind[job[BLOCKED_BY]] = true
  elseif ENDED[status] then
    add(P .. 'ended:' .. status .. SEP .. job[QUEUE], job[FINISHED_AT], id)
  end
end

local function tell(id, job, what, token, rest)
  local moves = job[MOVES] + 1
  job[MOVES] = digits[moves]
  if moves > MOST_LINES then
    local before, kept = string.match(job[REST], '^(.*%z)%Z-\n(.*)$')
    job[REST] = before .. kept
  end
  job[REST] = job[REST] .. '\n' .. NOW .. ',' .. what .. job[STATUS] .. ',' .. token .. ',' .. rest
  changed[id] = job
end

-- A note that Lua itself writes: plain text without line breaks.
local function noted(text)
  return '!' .. text
end

local function let_go(id, job)
  if job[KEY] ~= '' then
    if redis.call('HGET', P .. 'keys', job[KEY]) == id then
      redis.call('HDEL', P .. 'keys', job[KEY])
    end
    job[KEY] = ''
  end
end

local function hold(id, job, key)
  job[KEY] = key
  if key ~= '' then
    redis.call('HSET', P .. 'keys', key, id)
  end
end

local function in_parts(command, key, values)
  for first = 1, #values, MOST do
    redis.call(command, key, unpack(values, first, math.min(first + MOST - 1, #values)))
  end
end

-- Writes what was gathered.
local function flush()
  for key, members in pairs(removals) do
    in_parts('ZREM', key, members)
  end
  for key, pairs_ in pairs(additions) do
    in_parts('ZADD', key, pairs_)
  end
  local written, n = {}, 0
  for id, job in pairs(changed) do
    local text = joined(job)
    texts[id] = text
    written[n + 1] = RECORD .. id
    written[n + 2] = text
    n = n + 2
    if n >= MOST then
      redis.call('MSET', unpack(written))
      written, n = {}, 0
    end
  end
  if n > 0 then
    redis.call('MSET', unpack(written))
  end
  for key, fields in pairs(tallies) do
    for field, by in pairs(fields) do
      if by ~= 0 and redis.call('HINCRBY', key, field, by) == 0 then
        redis.call('HDEL', key, field)
      end
    end
  end
  for line, priority in pairs(lines) do
    if redis.call('EXISTS', P .. 'w:' .. line) == 1 then
      redis.call('ZADD', P .. 'lines', priority, line)
    else
      redis.call('ZREM', P .. 'lines', line)
    end
  end
  for by in pairs(queues_behind) do
    if redis.call('EXISTS', P .. 'b:' .. by) == 1 then
      redis.call('ZADD', P .. 'blocked', 0, by)
    else
      redis.call('ZREM', P .. 'blocked', by)
    end
  end
  removals, additions, changed, tallies, lines, queues_behind = {}, {}, {}, {}, {}, {}
end

-- Lets all that follows be written although memory is full: Redis refuses only a script's first write.
local function go_on_when_full()
  redis.call('DEL', P .. 'none')
end

local function wake()
  redis.call('PUBLISH', P .. 'notices', '')
end

-- The lists that a job is in as long as it exists, whatever its status.
local function each_list(job, act, id)
  job = whole(job)
  if job[USER] ~= '' then act(P .. 'user:' .. job[USER], id) end
  if job[ENTITY] ~= '' then act(P .. 'entity:' .. job[ENTITY], id) end
  if job[ENTITY_ID] ~= '' then act(P .. 'entity_id:' .. job[ENTITY_ID], id) end
  if job[CORRELATION] ~= '' then act(P .. 'correlation:' .. job[CORRELATION], id) end
  if job[SCHEDULE] ~= '' then act(P .. 'schedule:' .. job[SCHEDULE], id) end
  if job[PARENT] ~= '' then act(P .. 'parent:' .. job[PARENT], id) end
end

local function erase(id, job)
  leave(id, job)
  each_list(job, remove, id)
  if job[SCHEDULE] ~= '' then
    remove(P .. 'live:' .. job[SCHEDULE], id)
    local tick = whole(job)[TICK]
    if tick ~= '' and redis.call('HGET', P .. 'ticked:' .. job[SCHEDULE], tick) == id then
      redis.call('HDEL', P .. 'ticked:' .. job[SCHEDULE], tick)
    end
  end
  let_go(id, job)
  jobs[id] = false
  changed[id] = nil
  redis.call('DEL', RECORD .. id, P .. 'x:' .. id)
end

-- Where a schedule asks whether an earlier job of it is live.
local function mark_live(id, job)
  if job[SCHEDULE] ~= '' then
    if ENDED[job[STATUS]] then
      remove(P .. 'live:' .. job[SCHEDULE], id)
    else
      add(P .. 'live:' .. job[SCHEDULE], 0, id)
    end
  end
end

-- A list may name a job whose record is gone, if somebody deleted that by hand: then the name goes too.
local function drop(key, id)
  redis.call('ZREM', key, id)
end

-- Queues as many of a line of blocked jobs as have room now; the claim tests them again.
local function unblock(by)
  local key = P .. 'b:' .. by
  local first = redis.call('ZRANGE', key, 0, 0)[1]
  if not first then
    return 0
  end
  local room = 1
  if string.sub(by, 1, 7) == 'unique:' then
    if redis.call('HEXISTS', P .. 'keys', string.sub(by, 8)) == 1 then
      return 0
    end
  else
    local taken = tonumber(redis.call('HGET', P .. 'slots', string.sub(by, 7)) or 0)
    local job = job_of(first)
    room = (job and tonumber(job[LIMIT]) or 1) - taken
    if room < 1 then
      return 0
    end
  end
  local ids = redis.call('ZRANGE', key, 0, math.min(room, MOST) - 1)
  for _, id in ipairs(ids) do
    local job = job_of(id)
    if job then
      leave(id, job)
      job[BLOCKED_BY] = ''
      job[UPDATED_AT] = NOW
      enter(id, job, 'q')
      tell(id, job, 'u', '', '')
    else
      drop(key, id)
    end
  end
  return #ids
end

local function unblock_behind(waited)
  if redis.call('EXISTS', P .. 'blocked') == 0 then
    return
  end
  for by in pairs(waited) do
    unblock(by)
  end
  flush()
end

local function waited_for(job, waited)
  if job[LIMIT_KEY] ~= '' then waited['limit:' .. job[LIMIT_KEY]] = true end
  if job[KEY_RUNNING] ~= '' then waited['unique:' .. job[KEY_RUNNING]] = true end
end
