-- What every script begins with: the clock, names of keys, and records.
--
-- KEYS[1] is what all keys of the namespace begin with, hash tag included.
local P = KEYS[1]
local SEP = '\31'
local MOST = 1000
local MOST_LINES = 100
local RECORD = P .. 'j:'

-- What blocks a job is one of the words of BY and a key; scripting.py puts the words in place of BY.limit and the like.
local function is_by(word, by)
  return string.sub(by, 1, #word) == word
end

local function key_of(word, by)
  return string.sub(by, #word + 1)
end

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- Numbers as text, made once in a call: making them is slower than all else that is done with a field.
local digits = setmetatable({}, {__index = function(known, n)
  local text = string.format('%.0f', n)
  known[n] = text
  return text
end})
local NOW = digits[now]

-- STATUS, RUN_AT and so on are the places of a record's fields: scripting.py puts their numbers in, from the list in
-- records.py. First stands what is a job's own even among jobs that were asked for alike, then the size of what such jobs
-- share, then that, and then REST, which moves leave in one piece and at whose end the history grows.

-- How the record was read or last written; false once the job has changed since.
local TEXT = 0
local OWN_PARTS = '^' .. string.rep('(%Z*)%z', SIZE) .. '()'
local SHARED_PARTS = '^' .. string.rep('(%Z*)%z', APART - QUEUE) .. '(%Z*)$'

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

local function packed(fields)
  return table.concat(fields, '\0')
end

-- A kind is what jobs share that look alike. It is taken apart once in a call, and is the metatable of its jobs: they read
-- their shared fields in it. A job that writes one of them is of no kind from then on and has all its fields itself.
local kinds = {}

local function of_no_kind(job, field, value)
  local shared = getmetatable(job).__index
  setmetatable(job, nil)
  for at = QUEUE, APART do
    job[at] = shared[at]
  end
  job[field] = value
end

local function kind_of(text)
  local kind = kinds[text]
  if not kind then
    kind = {
      text = #text .. '\0' .. text, __newindex = of_no_kind,
      __index = {'', '', '', '', '', '', '', '', '', '', '', '', '', string.match(text, SHARED_PARTS)},
    }
    kinds[text] = kind
  end
  return kind
end

local function parts_of(text)
  local status, run_at, queued_at, updated_at, created_at, wait, result, key, key_queued, key_running, limit_key, more, size,
    at = string.match(text, OWN_PARTS)
  local after = at + size
  return setmetatable({
    status, run_at, queued_at, updated_at, created_at, wait, result, key, key_queued, key_running, limit_key, more,
    [REST] = string.sub(text, after + 1), [TEXT] = text,
  }, kind_of(string.sub(text, at, after - 1)))
end

local function joined(job)
  local kind, text = getmetatable(job), nil
  if kind then
    text = kind.text
  else
    text = table.concat(job, '\0', QUEUE, APART)
    text = #text .. '\0' .. text
  end
  return table.concat(job, '\0', STATUS, SIZE - 1) .. '\0' .. text .. '\0' .. job[REST]
end

local function whole(job)
  return split(joined(job))
end

-- Most jobs have none of what MORE and CONTROL hold: both are empty then, and are taken apart only where not.
local function more_of(job)
  return string.match(job[MORE], '^([^\30]*)\30([^\30]*)\30([^\30]*)\30?([^\30]*)')
end

local function next_of(job)
  return job[MORE] ~= '' and select(3, more_of(job)) or ''
end

-- The number and the window of its rate, and whether it awaits success or the end.
local function control_of(job)
  local n, per, awaits = string.match(job[CONTROL], '^([^\30]*)\30([^\30]*)\30([^\30]*)')
  return tonumber(n), tonumber(per), awaits
end

local function expiry_of(job)
  return job[MORE] ~= '' and select(4, more_of(job)) or ''
end

-- Whether there is something under k: and its id.
local function keeps_some(job)
  return job[CONTROL] ~= '' and string.find(job[CONTROL], '^[^\30]*\30[^\30]*\30[^\30]*\30[^\30]*\30.')
end

-- MORE or CONTROL with one of its parts changed.
local function with_part(text, place, value)
  local parts = {}
  for part in string.gmatch(text .. '\30', '([^\30]*)\30') do
    parts[#parts + 1] = part
  end
  for at = #parts + 1, place do
    parts[at] = ''
  end
  parts[place] = value
  local parted = table.concat(parts, '\30')
  return string.find(parted, '[^\30]') and parted or ''
end

-- What this call has read, and the ids of what it is about to write.
local jobs, changed = {}, {}

local function touch(id, job)
  if job[TEXT] then
    job[TEXT] = false
    changed[#changed + 1] = id
  end
end

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

-- A line of history, in the words of records.py.
local function entry_of(what, status, token, rest)
  return '\n' .. NOW .. ',' .. what .. status .. ',' .. token .. ',' .. rest
end

local function append(id, job, line)
  if tonumber(job[MOVES]) > MOST_LINES then
    local before, kept = string.match(job[REST], '^(.*%z)%Z-\n(.*)$')
    job[REST] = before .. kept
  end
  job[REST] = job[REST] .. line
  touch(id, job)
end

local function tell(id, job, what, token, rest)
  job[MOVES] = digits[job[MOVES] + 1]
  append(id, job, entry_of(what, job[STATUS], token, rest))
end

-- A note that Lua itself writes: plain text without line breaks.
local function noted(text)
  return '!' .. text
end

-- A move that changes many jobs alike, all of one status. `change` is given the fields they share, changes them and answers
-- the new status and the line of history: once for all jobs of a kind. `turned` keeps what came of it, by kind, with the
-- ids; move_all in common.lua then moves them between their lists. Answers the new status.
local function turn(id, job, turned, change)
  local kind = getmetatable(job)
  if not kind then
    kind = kind_of(table.concat(job, '\0', QUEUE, APART))
    for at = QUEUE, APART do
      job[at] = nil
    end
  end
  local herd = turned[kind]
  if not herd then
    local before, after = {job[STATUS]}, {unpack(kind.__index)}
    herd = {before = setmetatable(before, kind), after = after, ids = {}, n = 0}
    herd.to, herd.line = change(after)
    after[MOVES] = digits[after[MOVES] + 1]
    herd.kind = kind_of(table.concat(after, '\0', QUEUE, APART))
    turned[kind] = herd
  end
  herd.n = herd.n + 1
  herd.ids[herd.n] = id
  job[STATUS] = herd.to
  append(id, setmetatable(job, herd.kind), herd.line)
  return herd.to
end
