-- Shared by insert.lua and fire.lua: drafts become jobs.
local GROUP = 11
local DRAFT = 7

-- A group is what drafts asked for alike share: queue, type, priority, delay, run_at, the first line's note,
-- whether a conflict replaces, the longest wait, the idempotency window, whether it awaits others, after what time it expires.
local function group_at(at)
  local delay, run_at = ARGV[at + 3], ARGV[at + 4]
  if delay ~= '' then
    run_at = digits[now + tonumber(delay)]
  elseif run_at == '' then
    run_at = NOW
  end
  local status = ARGV[at + 9] == '1' and 'b' or tonumber(run_at) > now and 's' or 'q'
  return {
    queue = ARGV[at], type = ARGV[at + 1], priority = ARGV[at + 2], run_at = run_at, status = status,
    replaces = ARGV[at + 6] == '1', longest = ARGV[at + 7], window = tonumber(ARGV[at + 8]),
    expiry = ARGV[at + 10] ~= '' and digits[now + tonumber(ARGV[at + 10])] or '',
    before = table.concat({status, run_at, status == 's' and '' or NOW, NOW, NOW}, '\0') .. '\0',
    after = '\0' .. NOW .. ',e' .. status .. ',,' .. ARGV[at + 5],
  }
end

-- A draft: its group, id, record without instants and history, payload if that lies apart, whether it is in other lists
-- than those of its status, unique key, idempotency key.
local function draft_at(at, groups)
  return {
    group = groups[tonumber(ARGV[at])], id = ARGV[at + 1], body = ARGV[at + 2], apart = ARGV[at + 3],
    listed = ARGV[at + 4] == '1', key = ARGV[at + 5], idempotent = ARGV[at + 6],
  }
end

-- Where records.STAMP stands, and no name or payload has such a character, a record tells when its job expires.
local function stamped(group, text)
  return group.expiry == '' and text or (string.gsub(text, '\29', group.expiry, 1))
end

local function record_of(draft)
  return draft.group.before .. stamped(draft.group, draft.body) .. draft.group.after
end

local function replace(draft, holder_id, holder)
  local group, fresh, held = draft.group, split(record_of(draft)), whole(holder)
  local run_at = tonumber(group.run_at)
  if group.longest ~= '' then
    run_at = math.max(now, math.min(run_at, holder[CREATED_AT] + tonumber(group.longest)))
  end
  local from, to = holder[STATUS], run_at > now and 's' or 'q'
  local by = holder[BLOCKED_BY]
  if from == 'b' and is_by(BY.flow, by) then
    to, run_at = 'b', tonumber(holder[RUN_AT]) -- one that awaits others goes on waiting
  else
    by = ''
  end
  leave(holder_id, holder, to)
  held[PAYLOAD] = fresh[PAYLOAD]
  holder[REST] = table.concat(held, '\0', REST)
  holder[APART], holder[PRIORITY], holder[RUN_AT] = fresh[APART], group.priority, digits[run_at]
  holder[UPDATED_AT], holder[BLOCKED_BY] = NOW, by
  if keeps_some(holder) then -- what was made of the payload that goes
    redis.call('DEL', P .. 'k:' .. holder_id)
    holder[CONTROL] = with_part(holder[CONTROL], KEEPS, '')
  end
  if group.expiry ~= expiry_of(holder) then
    holder[MORE] = with_part(holder[MORE], EXPIRY, group.expiry)
    news.due = true
  end
  if to ~= 'b' then
    holder[QUEUED_AT] = to == 'q' and NOW or ''
  end
  enter(holder_id, holder, to, from)
  tell(holder_id, holder, 'R', '', '')
  flush()
  if draft.apart ~= '' then
    redis.call('SET', P .. 'x:' .. holder_id, draft.apart)
  else
    redis.call('DEL', P .. 'x:' .. holder_id)
  end
end

local function waiting_in(queue)
  local n = 0
  for _, type_ in ipairs(redis.call('SMEMBERS', P .. 'kinds:' .. queue)) do
    local counts = counts_of(queue, type_)
    for at = 1, 4 do
      n = n + tonumber(counts[at] or 0)
    end
  end
  return n
end

-- Largest depths of the queues that have one, and how many wait there.
local function rooms(groups)
  local depths = {}
  for _, group in ipairs(groups) do
    local most = depths[group.queue] == nil and redis.call('HGET', P .. 'depths', group.queue)
    if most then
      depths[group.queue] = {most = tonumber(most), n = waiting_in(group.queue)}
    end
  end
  return depths
end

-- The millisecond to stand at: beside the first of all fair jobs that wait, but behind the last of the same key, and
-- behind all that take no part.
local function turn_at(job, fair)
  local turns = turns_of(job)
  if redis.call('EXISTS', turns) == 0 then
    redis.call('DEL', turns .. SEP)
    return now
  end
  local last = redis.call('ZREVRANGE', turns .. SEP .. fair, 0, 0, 'WITHSCORES')[2]
  return math.max(next_turn(turns), last and tonumber(last) + 1 or 0)
end

local function write(draft)
  local group, id = draft.group, draft.id
  if draft.apart ~= '' then
    redis.call('SET', P .. 'x:' .. id, draft.apart)
  end
  local job = parts_of(record_of(draft))
  jobs[id] = job
  local fair = job[MORE] ~= '' and select(2, more_of(job)) or ''
  if fair ~= '' and group.status == 'q' then
    job[RUN_AT] = digits[turn_at(job, fair)]
  end
  enter(id, job, group.status)
  news.due = news.due or group.expiry ~= ''
  if draft.listed then
    each_list(job, function(key, ids) add_all(key, 0, ids) end, {id})
  end
  flush()
  local tick = job[SCHEDULE] ~= '' and whole(job)[TICK]
  if tick and tick ~= '' then
    redis.call('HSET', P .. 'ticked:' .. job[SCHEDULE], tick, id)
  end
  if draft.key ~= '' then
    redis.call('HSET', P .. 'keys', draft.key, id)
  end
  if draft.idempotent ~= '' and group.window and group.window > 0 then
    redis.call('SET', P .. 'i:' .. draft.idempotent, id, 'PX', group.window)
  end
end

-- One draft after the other: what it met, who, and how deep the queue is; as core.admission.judge says.
local function insert_one(draft, depths)
  local group, id = draft.group, draft.id
  -- The same id again is the same job, even after it has ended and its keys have gone to others.
  if job_of(id) then
    return {'created', id}
  end
  if draft.idempotent ~= '' then
    local known = redis.call('GET', P .. 'i:' .. draft.idempotent)
    if known and known ~= id then
      return {'duplicate', known, draft.idempotent}
    end
  end
  if draft.key ~= '' then
    local holder_id = redis.call('HGET', P .. 'keys', draft.key)
    local holder = holder_id and holder_id ~= id and job_of(holder_id)
    if holder then
      if not group.replaces or not WAITS[holder[STATUS]] then
        return {'duplicate', holder_id, draft.key}
      end
      replace(draft, holder_id, holder)
      return {'replaced', holder_id}
    end
  end
  local depth = depths[group.queue]
  if depth then
    if depth.n >= depth.most then
      return {'full', group.queue, depth.most}
    end
    depth.n = depth.n + 1
  end
  write(draft)
  return {'created', id}
end

local function know_queues(groups)
  for _, group in ipairs(groups) do
    redis.call('HSETNX', P .. 'queues', group.queue, now)
  end
end
