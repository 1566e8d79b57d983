-- The gate of claim.lua: a job that needs a slot, a running key or room in a rate is let through, or put aside as blocked.
-- What it decides is what core.admission.admit says.

local used, held = {}, {}

-- What is spent of the rates that this claim meets, how many stand in their lines, and what it books itself.
local rates = {}

local function rates_let_through(key, job)
  local n, per = control_of(job)
  local rate = rates[key]
  if not rate then
    local spent, free_at = spent_of(key, per)
    rate = {spent = spent, free_at = free_at, in_line = redis.call('ZCARD', P .. 'b:' .. BY.rate .. key), booked = 0}
    rates[key] = rate
  end
  local called = job[BLOCKED_BY] ~= ''
  if rate.spent + (called and 0 or rate.in_line) >= n then
    rate.in_line = rate.in_line + 1
    return false
  end
  rate.spent, rate.booked, rate.per = rate.spent + 1, rate.booked + 1, per
  return true
end

-- Under the end of the part of the window that now lies in, as core.rate says.
local function book_rates()
  for key, rate in pairs(rates) do
    if rate.booked > 0 then
      local name, part = P .. 'rate:' .. key, math.floor(rate.per / 20)
      for _, at in ipairs(redis.call('HKEYS', name)) do
        if tonumber(at) <= now - rate.per then
          redis.call('HDEL', name, at)
        end
      end
      local booked_at = math.ceil(now / part) * part
      redis.call('HINCRBY', name, digits[booked_at], rate.booked)
      redis.call('PEXPIRE', name, rate.per + part)
      redis.call('ZADD', P .. 'rooms', 'XX', 'LT', rate.free_at or booked_at + rate.per, BY.rate .. key)
    end
  end
end

local function is_plain(job)
  return job[LIMIT_KEY] == '' and job[KEY_RUNNING] == '' and job[MORE] == ''
end

local EXPIRED = 'expired'

-- What keeps a job from running now, counting what this very claim has let through.
local function gate(job)
  local limit, running = job[LIMIT_KEY], job[KEY_RUNNING]
  local rate, _, _, expiry = '', '', '', ''
  if job[MORE] ~= '' then
    rate, _, _, expiry = more_of(job)
  end
  if expiry ~= '' and job[TOKEN] == '0' and tonumber(expiry) <= now then
    return EXPIRED
  end
  if running == job[KEY] then
    running = ''
  end
  if limit ~= '' then
    used[limit] = used[limit] or tonumber(redis.call('HGET', P .. 'slots', limit) or 0)
    if used[limit] >= tonumber(job[LIMIT] ~= '' and job[LIMIT] or 1) then
      return BY.limit .. limit
    end
  end
  if running ~= '' then
    if held[running] or redis.call('HEXISTS', P .. 'keys', running) == 1 then
      return BY.unique .. running
    end
  end
  if rate ~= '' and not rates_let_through(rate, job) then
    return BY.rate .. rate
  end
  if running ~= '' then
    held[running] = true
  end
  if limit ~= '' then
    used[limit] = used[limit] + 1
  end
end

local function put_aside(id, job, by)
  leave(id, job, 'b')
  job[UPDATED_AT], job[BLOCKED_BY] = NOW, by
  enter(id, job, 'b', 'q')
  tell(id, job, 'b', '', noted(by))
end
