-- What scripts share beside records: writes gathered into few commands, the lists that a job is in, and unblocking.
--
-- No script raises after its first write: Redis does not undo what a script has done. Removals are written first: they are
-- allowed when memory is full, and what comes after an allowed write is allowed too, so that work at hand can end while
-- new work is refused.
local COUNTS, DUE = P .. 'counts', P .. 'due'

local WAITS = {s = true, q = true, b = true, r = true}
local ENDED = {d = true, f = true, c = true}
-- Queued and processing jobs are in one view, so that a claim need not touch it; `leases` tells them apart.
local VIEW = {s = 's', q = 'a', p = 'a', b = 'b', r = 'r', d = 'd', f = 'f', c = 'c'}

local removals, additions, tallies = {}, {}, {}
local lines, queues_behind, endings = {}, {}, {}
-- Lists of leases that were added to, and the earliest end among these.
local leasing = {}
-- What listeners are told of at the end: how many jobs were queued and where, whether something is to happen at a time,
-- whether something ended.
local news = {queued = 0}
-- Lines of which a claim takes all up to some place: how many, by key. They need not be looked for one by one.
local fronts = {}

local function told_queued(queue, n)
  news.queue = (news.queued == 0 or news.queue == queue) and queue or ''
  news.queued = news.queued + n
end

local function gathered(lists, key)
  local list = lists[key]
  if not list then
    list = {}
    lists[key] = list
  end
  return list, #list
end

local function remove_all(key, members)
  local list, n = gathered(removals, key)
  for at = 1, #members do
    list[n + at] = members[at]
  end
end

local function add_all(key, score, members)
  local list, n = gathered(additions, key)
  for at = 1, #members do
    list[n + 1], list[n + 2] = score, members[at]
    n = n + 2
  end
end

-- Each by a field of its own.
local function add_each(key, field, ids)
  local list, n = gathered(additions, key)
  for at = 1, #ids do
    list[n + 1], list[n + 2] = jobs[ids[at]][field], ids[at]
    n = n + 2
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
    made = make(one, two, three)
    by_three[three] = made
  end
  return made
end

-- What is named after a status, a queue and a type; `n` is how many jobs more there are of them than are counted.
local counted = {}

local function named(status, queue, type_)
  local of = queue .. SEP .. type_
  local made = {
    of = of, queue = queue, type = type_, name = status .. SEP .. of, view = P .. 'v:' .. VIEW[status] .. SEP .. of,
    leases = P .. 'leases:' .. of, ended = P .. 'ended:' .. status .. SEP .. queue,
    ending = P .. 'ending:' .. status, n = 0,
  }
  counted[#counted + 1] = made
  return made
end

local function names_of(job)
  return shared(names, job[STATUS], job[QUEUE], job[TYPE], named)
end

local function named_line(queue, type_, priority)
  local name = queue .. SEP .. type_ .. SEP .. priority
  return {name = name, key = P .. 'w:' .. name}
end

local function split_line(line)
  local first = string.find(line, SEP, 1, true)
  local second = string.find(line, SEP, first + 1, true)
  return string.sub(line, 1, first - 1), string.sub(line, first + 1, second - 1), string.sub(line, second + 1)
end

local function line_of(job)
  local line = shared(line_names, job[QUEUE], job[TYPE], job[PRIORITY], named_line)
  lines[line.name] = job[PRIORITY]
  return line.key
end

local function fill_slots(ids, n)
  for at = 1, #ids do
    local limit = jobs[ids[at]][LIMIT_KEY]
    if limit ~= '' then
      tally(P .. 'slots', limit, n)
    end
  end
end

-- Where turns are taken: all fair jobs of a queue and priority, and those of one key among them.
local function turns_of(job)
  return P .. 'fair:' .. job[QUEUE] .. SEP .. job[PRIORITY]
end

-- Queued jobs with a fair key stand there by their time as well; and waiting ones that no worker has taken yet stand where it
-- is seen when they expire. `known` has the fields that these share.
local function stand_by_time(ids, known, here)
  local takes_turns, is_new = known[STATUS] == 'q', known[TOKEN] == '0'
  for at = 1, #ids do
    local job = jobs[ids[at]]
    if job[MORE] ~= '' then
      local _, fair, _, expiry = more_of(job)
      local stands = {}
      if takes_turns and fair ~= '' then
        local turns = turns_of(known)
        stands[turns], stands[turns .. SEP .. fair] = job[RUN_AT], job[RUN_AT]
      end
      if is_new and expiry ~= '' then
        stands[P .. 'expiring'] = expiry
      end
      for key, score in pairs(stands) do
        if here then
          add_all(key, score, {ids[at]})
        else
          remove_all(key, {ids[at]})
        end
      end
    end
  end
end

-- Jobs that take no part are known as well while others take turns beside them, so that no fair one that comes later is
-- put before them; of more than so many, the last only by its time. Jobs that have left the line are noticed when they
-- are looked up.
local PLAIN_KEPT = 100
local beside = {}

local function stand_beside(turns, waiting)
  local key = turns .. SEP
  local list, n = gathered(additions, key)
  local kept, last = math.max(1, #waiting - 2 * PLAIN_KEPT + 1), beside[key] or 0
  for at = kept, #waiting do
    n = n + 1
    list[n] = waiting[at]
  end
  for at = 1, kept - 1, 2 do
    last = math.max(last, tonumber(waiting[at]))
  end
  beside[key] = last
end

local function stand_beside_turns(ids, known)
  local turns = turns_of(known)
  if not additions[turns] and redis.call('EXISTS', turns) == 0 then
    return
  end
  local waiting = {}
  for at = 1, #ids do
    local job = jobs[ids[at]]
    if job[MORE] == '' or select(2, more_of(job)) == '' then
      waiting[#waiting + 1] = job[RUN_AT]
      waiting[#waiting + 1] = ids[at]
    end
  end
  stand_beside(turns, waiting)
end

-- Where a fair job that comes now stands, but for others of its key: behind all that wait where no fair one does.
local function next_turn(turns)
  local first, key = redis.call('ZRANGE', turns, 0, 0, 'WITHSCORES')[2], turns .. SEP
  if not first then
    return now + 1
  end
  while true do
    local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
    local id, job = last[1], last[1] and job_of(last[1])
    if not id then
      return tonumber(first)
    elseif id == '' or job and job[STATUS] == 'q' and turns_of(job) == turns then
      return math.max(tonumber(first), tonumber(last[2]) + 1)
    end
    redis.call('ZREM', key, id)
  end
end

-- One with a fair key may come back to an old place: those that come later stand where they would have stood without it.
local function keep_turns(ids, known)
  local waiting = {}
  for at = 1, #ids do
    local job = jobs[ids[at]]
    if job[MORE] ~= '' and select(2, more_of(job)) ~= '' then
      waiting[#waiting + 1] = digits[next_turn(turns_of(known)) - 1]
      waiting[#waiting + 1] = ids[at]
    end
  end
  if #waiting > 0 then
    stand_beside(turns_of(known), waiting)
  end
end

-- Leases that end then. `leased` names the lists that have some, by an instant before which none of a list ends.
local function lease_all(known, ids, until_)
  add_all(known.leases, until_, ids)
  leasing[known.of] = math.min(leasing[known.of] or math.huge, tonumber(until_))
end

-- Takes jobs out of every list their status put them in, but for the view if they will be in that again. They have
-- the status and the shared fields of `job`; `to` is the status they move to, or nothing.
local function leave_all(ids, job, to)
  local status, known = job[STATUS], names_of(job)
  known.n = known.n - #ids
  if VIEW[status] ~= VIEW[to] then
    remove_all(known.view, ids)
  end
  if WAITS[status] then
    stand_by_time(ids, job, false)
  end
  if status == 'q' then
    local line = line_of(job)
    if not fronts[line] then
      remove_all(line, ids)
    end
    if job[BLOCKED_BY] ~= '' then
      tally(P .. 'called', job[BLOCKED_BY], -#ids)
    end
  elseif status == 'p' then
    remove_all(known.leases, ids)
    remove_all(P .. 'confirmed', ids)
    if job[CANCEL_AT] ~= '' then
      remove_all(P .. 'cancels', ids)
    end
    fill_slots(ids, -1)
  elseif status == 's' or status == 'r' then
    remove_all(DUE, ids)
  elseif status == 'b' then
    remove_all(P .. 'b:' .. job[BLOCKED_BY], ids)
    if is_by(BY.signal, job[BLOCKED_BY]) then
      remove_all(DUE, ids)
    else
      queues_behind[job[BLOCKED_BY]] = true
    end
  elseif ENDED[status] then
    remove_all(known.ended, ids)
    for at = 1, #ids do
      local next_ = next_of(jobs[ids[at]])
      if next_ ~= '' then
        remove_all(P .. 'aside:' .. next_, {ids[at]})
      end
    end
  end
end

-- Puts jobs into the lists of their status, which is that of `job`, as are their shared fields; `from` is the one they left,
-- or nothing.
local function enter_all(ids, job, from)
  local status, known = job[STATUS], names_of(job)
  known.n = known.n + #ids
  if VIEW[status] ~= VIEW[from] then
    add_all(known.view, '0', ids)
  end
  if WAITS[status] then
    stand_by_time(ids, job, true)
  end
  if status == 'q' then
    add_each(line_of(job), RUN_AT, ids)
    if from ~= 'q' then
      told_queued(job[QUEUE], #ids)
    end
    stand_beside_turns(ids, job)
    if from then
      keep_turns(ids, job)
    end
    if job[BLOCKED_BY] ~= '' then
      tally(P .. 'called', job[BLOCKED_BY], #ids)
    end
  elseif status == 'p' then
    lease_all(known, ids, job[EXPIRES_AT])
    fill_slots(ids, 1)
  elseif status == 's' or status == 'r' then
    add_each(DUE, RUN_AT, ids)
    news.due = true
  elseif status == 'b' then
    add_each(P .. 'b:' .. job[BLOCKED_BY], QUEUED_AT, ids)
    if is_by(BY.signal, job[BLOCKED_BY]) then
      add_each(DUE, RUN_AT, ids) -- when its time is up
      news.due = true
    else
      queues_behind[job[BLOCKED_BY]] = true
    end
  elseif ENDED[status] then
    add_all(known.ended, job[FINISHED_AT], ids)
    endings[known] = job[FINISHED_AT]
    news.changed = true
  end
end

local function mark(key, ids, here)
  if here then
    add_all(key, '0', ids)
  else
    remove_all(key, ids)
  end
end

-- Where a schedule asks whether an earlier job of it is live, and a job whether one that it awaits is.
local function mark_live(ids, job, from)
  local was, is = from and not ENDED[from], not ENDED[job[STATUS]]
  if was == is then
    return
  end
  if job[SCHEDULE] ~= '' then
    mark(P .. 'live:' .. job[SCHEDULE], ids, is)
  end
  for at = 1, #ids do
    local next_ = next_of(jobs[ids[at]])
    if next_ ~= '' then
      mark(P .. 'await:' .. next_, {ids[at]}, is)
    end
  end
end

local function leave(id, job, to)
  leave_all({id}, job, to)
end

local function enter(id, job, status, from)
  job[STATUS] = status
  touch(id, job)
  enter_all({id}, job, from)
  mark_live({id}, job, from)
end

-- Moves the jobs of every kind that `turn` has changed.
local function move_all(turned)
  for _, herd in pairs(turned) do
    local from = herd.before[STATUS]
    herd.after[STATUS] = herd.to
    leave_all(herd.ids, herd.before, herd.to)
    enter_all(herd.ids, herd.after, from)
    mark_live(herd.ids, herd.after, from)
  end
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

local function count(key, field, by)
  if by ~= 0 and redis.call('HINCRBY', key, field, by) == 0 then
    redis.call('HDEL', key, field)
  end
end

local STATUSES = {'s', 'q', 'b', 'r', 'p', 'd', 'f', 'c'}

-- How many jobs there are of a queue and type in each status, in the order above; the first four wait.
local function counts_of(queue, type_)
  local fields = {}
  for at, status in ipairs(STATUSES) do
    fields[at] = status .. SEP .. queue .. SEP .. type_
  end
  return redis.call('HMGET', COUNTS, unpack(fields))
end

-- `kinds` names the types of a queue that are counted.
local function count_known(known)
  local by = known.n
  known.n = 0
  if by == 0 then
    return
  end
  local n = redis.call('HINCRBY', COUNTS, known.name, by)
  if n == by then
    redis.call('SADD', P .. 'kinds:' .. known.queue, known.type)
  elseif n == 0 then
    redis.call('HDEL', COUNTS, known.name)
    for _, left in ipairs(counts_of(known.queue, known.type)) do
      if left then
        return
      end
    end
    redis.call('SREM', P .. 'kinds:' .. known.queue, known.type)
  end
end

-- Lines are found by their queue, and by their type unless the queue is paused.
local function index_line(line)
  local queue, type_, priority = split_line(line)
  redis.call('ZADD', P .. 'by:' .. queue, priority, type_ .. SEP .. priority)
  if redis.call('HEXISTS', P .. 'paused', queue) == 0 then
    redis.call('ZADD', P .. 'of:' .. type_, priority, queue .. SEP .. priority)
  end
end

local function forget_line(line)
  local queue, type_, priority = split_line(line)
  redis.call('ZREM', P .. 'lines', line)
  redis.call('ZREM', P .. 'by:' .. queue, type_ .. SEP .. priority)
  redis.call('ZREM', P .. 'of:' .. type_, queue .. SEP .. priority)
end

local function emptied(list)
  return next(list) == nil and list or {}
end

-- Writes what was gathered.
local function flush()
  for key, n in pairs(fronts) do
    if n > 0 then
      redis.call('ZREMRANGEBYRANK', key, 0, n - 1)
    end
  end
  for key, members in pairs(removals) do
    in_parts('ZREM', key, members)
  end
  for key, pairs_ in pairs(additions) do
    in_parts('ZADD', key, pairs_)
  end
  local written, n = {}, 0
  for _, id in ipairs(changed) do
    local job = jobs[id]
    if job then
      job[TEXT] = joined(job)
      written[n + 1], written[n + 2] = RECORD .. id, job[TEXT]
      n = n + 2
    end
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
      count(key, field, by)
    end
  end
  for _, known in ipairs(counted) do
    count_known(known)
  end
  for key, last in pairs(beside) do
    local more = redis.call('ZRANGE', key, -PLAIN_KEPT - 1, -PLAIN_KEPT - 1, 'WITHSCORES')[2]
    if more or last > 0 then
      last = math.max(last, tonumber(more or 0), tonumber(redis.call('ZSCORE', key, '') or 0))
      redis.call('ZREMRANGEBYRANK', key, 0, -PLAIN_KEPT - 1)
      redis.call('ZADD', key, digits[last], '')
    end
  end
  for known, at in pairs(endings) do
    -- Those that end later come after the first: that one alone tells when there is something to prune.
    redis.call('ZADD', known.ending, 'NX', at, known.queue)
  end
  for line, priority in pairs(lines) do
    if redis.call('EXISTS', P .. 'w:' .. line) == 0 then
      forget_line(line)
    elseif redis.call('ZADD', P .. 'lines', priority, line) == 1 then
      index_line(line)
    end
  end
  for by in pairs(queues_behind) do
    if redis.call('EXISTS', P .. 'b:' .. by) == 0 then
      redis.call('ZREM', P .. 'blocked', by)
    elseif redis.call('ZADD', P .. 'blocked', 0, by) == 1 and is_by(BY.rate, by) then
      redis.call('ZADD', P .. 'rooms', now, by) -- promote.lua says when there is room
    end
  end
  for of, first in pairs(leasing) do
    redis.call('ZADD', P .. 'leased', 'LT', first, of)
  end
  removals, additions, tallies, changed = emptied(removals), emptied(additions), emptied(tallies), emptied(changed)
  lines, queues_behind, fronts, leasing = emptied(lines), emptied(queues_behind), emptied(fronts), emptied(leasing)
  beside, endings = emptied(beside), emptied(endings)
end

-- Lets all that follows be written although memory is full: Redis refuses only a script's first write.
local function go_on_when_full()
  redis.call('DEL', P .. 'none')
end

-- As contract.Notice reads it. Everyone is to hear the same draw; the clock's microseconds are chance enough. Of a single
-- job only those are told who follow its lane, and of ends those who follow that lane.
local LANES = 64

local function publish(about, n, queue)
  local draw = (clock[1] * 1000003 + clock[2] * 7919) % 16777216
  local lane = about == 'c' and n == 1 and ':' .. digits[draw % LANES] or about == 'e' and ':' .. LANES or ''
  redis.call('PUBLISH', P .. 'notices' .. lane, about .. digits[n] .. '.' .. digits[draw] .. '.0.' .. queue)
end

-- Tells listeners what this call has changed; `changed_otherwise`: what no list tells of.
local function wake(changed_otherwise)
  if news.queued > 0 then
    publish('c', news.queued, news.queue)
  end
  if news.due then
    publish('d', 1, '')
  end
  if news.changed or changed_otherwise then
    publish('e', 1, '')
  end
  if news.cancel then
    publish('x', 1, '')
  end
  news = {queued = 0}
end

-- The lists that a job is in as long as it exists, whatever its status.
local function each_list(job, act, ids)
  local next_ = next_of(job)
  if next_ ~= '' then act(P .. 'next:' .. next_, ids) end
  job = whole(job)
  if job[USER] ~= '' then act(P .. 'user:' .. job[USER], ids) end
  if job[ENTITY] ~= '' then act(P .. 'entity:' .. job[ENTITY], ids) end
  if job[ENTITY_ID] ~= '' then act(P .. 'entity_id:' .. job[ENTITY_ID], ids) end
  if job[CORRELATION] ~= '' then act(P .. 'correlation:' .. job[CORRELATION], ids) end
  if job[SCHEDULE] ~= '' then act(P .. 'schedule:' .. job[SCHEDULE], ids) end
  if job[PARENT] ~= '' then act(P .. 'parent:' .. job[PARENT], ids) end
end

local function erase(id, job)
  leave(id, job)
  each_list(job, remove_all, {id})
  if next_of(job) ~= '' then
    remove_all(P .. 'await:' .. next_of(job), {id})
  end
  if job[SCHEDULE] ~= '' then
    remove_all(P .. 'live:' .. job[SCHEDULE], {id})
    local tick = whole(job)[TICK]
    if tick ~= '' and redis.call('HGET', P .. 'ticked:' .. job[SCHEDULE], tick) == id then
      redis.call('HDEL', P .. 'ticked:' .. job[SCHEDULE], tick)
    end
  end
  let_go(id, job)
  remove_all(P .. 'charged', {id})
  jobs[id] = false
  redis.call('DEL', RECORD .. id, P .. 'x:' .. id, P .. 'k:' .. id)
end

-- A list may name a job whose record is gone, if somebody deleted that by hand: then the name goes too.
local function drop(key, id)
  redis.call('ZREM', key, id)
end

-- The time until something is due, a rate may have room or a job expires, or -1; and when the first job expires.
local function time_to_next()
  local firsts = {}
  for at, list in ipairs({DUE, P .. 'rooms', P .. 'expiring'}) do
    firsts[at] = tonumber(redis.call('ZRANGE', list, 0, 0, 'WITHSCORES')[2] or math.huge)
  end
  local first = math.min(unpack(firsts))
  return first < math.huge and math.max(0, first - now) or -1, firsts[3]
end

-- How many starts of a rate are booked in the window that ends now, and when the oldest of them leaves it.
local function spent_of(key, per)
  local spent, oldest = 0, nil
  local booked = redis.call('HGETALL', P .. 'rate:' .. key)
  for at = 1, #booked, 2 do
    local when = tonumber(booked[at])
    if when > now - per then
      spent = spent + tonumber(booked[at + 1])
      oldest = math.min(oldest or when, when)
    end
  end
  return spent, oldest and oldest + per
end

-- How many of a line of blocked jobs may go on now; the claim tests them again.
local function room_of(by)
  if is_by(BY.unique, by) then
    return redis.call('HEXISTS', P .. 'keys', key_of(BY.unique, by)) == 1 and 0 or 1
  end
  local first = redis.call('ZRANGE', P .. 'b:' .. by, 0, 0)[1]
  local job = first and job_of(first)
  if not job then
    return first and 1 or 0
  end
  if is_by(BY.rate, by) then
    local n, per = control_of(job)
    local called = tonumber(redis.call('HGET', P .. 'called', by) or 0)
    return n - spent_of(key_of(BY.rate, by), per) - called
  end
  if is_by(BY.limit, by) then
    local taken = tonumber(redis.call('HGET', P .. 'slots', key_of(BY.limit, by)) or 0)
    return tonumber(job[LIMIT] ~= '' and job[LIMIT] or 1) - taken
  end
  return 0
end

-- One that awaits others goes on when none of them is live, or is cancelled with all that await it when one was `lost`.
local function follow(id, lost)
  local job = job_of(id)
  if not job or job[STATUS] ~= 'b' or job[BLOCKED_BY] ~= BY.flow .. id then
    return 0
  end
  local _, _, awaits = control_of(job)
  local stops = awaits == 'success' and lost
  if not stops and redis.call('EXISTS', P .. 'await:' .. id) == 1 then
    return 0
  end
  local to = stops and 'c' or 'q'
  leave(id, job, to)
  job[BLOCKED_BY], job[UPDATED_AT] = '', NOW
  if stops then
    job[FINISHED_AT] = NOW
  else
    job[RUN_AT], job[QUEUED_AT] = NOW, NOW
  end
  enter(id, job, to, 'b')
  tell(id, job, stops and 'c' or 'u', '', stops and noted(lost) or '')
  if not stops then
    return 1
  end
  let_go(id, job)
  flush()
  local next_ = next_of(job)
  return next_ ~= '' and follow(next_, 'job ' .. id .. ', which it awaited, was cancelled') or 0
end

-- Queues as many of a line of blocked jobs as have room now. Those of a rate stay known as called from its line.
local function unblock(by, lost)
  if is_by(BY.flow, by) then
    return follow(key_of(BY.flow, by), lost)
  end
  local key, room = P .. 'b:' .. by, room_of(by)
  local ids = room > 0 and redis.call('ZRANGE', key, 0, math.min(room, MOST) - 1) or {}
  for _, id in ipairs(ids) do
    local job = job_of(id)
    if job then
      leave(id, job, 'q')
      job[BLOCKED_BY] = is_by(BY.rate, by) and by or ''
      job[UPDATED_AT] = NOW
      enter(id, job, 'q', 'b')
      tell(id, job, 'u', '', '')
    else
      drop(key, id)
    end
  end
  return #ids
end

-- Answers how many go on.
local function unblock_behind(waited)
  if redis.call('EXISTS', P .. 'blocked') == 0 then
    return 0
  end
  local n = 0
  for by, lost in pairs(waited) do
    n = n + unblock(by, lost)
  end
  flush()
  return n
end

-- Cancels a job that waits; its key is freed once that is written.
local function cancel_waiting(id, job, rest)
  local from = job[STATUS]
  leave(id, job, 'c')
  job[FINISHED_AT], job[UPDATED_AT], job[CANCEL_AT], job[BLOCKED_BY] = NOW, NOW, NOW, ''
  enter(id, job, 'c', from)
  tell(id, job, 'c', '', rest)
end

-- What may go on when this job has ended or stepped back; `lost` tells how it ended without success, if it did.
local function waited_for(id, job, waited, lost)
  if job[LIMIT_KEY] ~= '' then waited[BY.limit .. job[LIMIT_KEY]] = false end
  if job[KEY_RUNNING] ~= '' then waited[BY.unique .. job[KEY_RUNNING]] = false end
  if job[MORE] ~= '' then
    local rate, _, next_ = more_of(job)
    if rate ~= '' then waited[BY.rate .. rate] = false end
    if next_ ~= '' then waited[BY.flow .. next_] = lost or waited[BY.flow .. next_] or false end
  end
end
