/**
 * The HCA's core clock: the time of a completion, and the time now. Both count cycles since power-on, at
 * `hcaCoreClockKhz` of the device; a completion carries their low 48 bits.
 * Source: interface sheet 2.7, 6.6; libmlx4 (read_completion_ts, ibv_query_rt_values_ex).
 */
import { timestampCqe } from '../abi/index.ts';
import { swap32 } from '../base/index.ts';
import { ValuesMask } from './constants.ts';
import type { IbvContext, IbvValuesEx } from './objects.ts';
import { VerbsError, verb } from './verbs-error.ts';

/** The timestamp of the entry at a physical address, in a CQ with timestamps. */
export const timestampOf = (view: DataView, address: number): number =>
  timestampCqe.fields.timestamp.get(view, address);

/** Reads high, low, high; repeats if the high part has changed. */
const clockReadsMax = 2;
const dwordBytes = 4;

/**
 * Reads the values that `values.compMask` requests, and sets it to those that were read (ibv_query_rt_values_ex): the
 * core clock is read by uncached loads, without a system call. Rejects with EINVAL for any other value, with EOPNOTSUPP
 * if the device hides its clock.
 */
export const queryRtValuesEx = (context: IbvContext, values: IbvValuesEx): Promise<void> =>
  verb('ibv_query_rt_values_ex', async () => {
    const asked = values.compMask;
    if ((asked & ~ValuesMask.IBV_VALUES_MASK_RAW_CLOCK) !== 0)
      throw new VerbsError('ibv_query_rt_values_ex', 'EINVAL', `compMask is ${asked}, expected 0 or 1`);
    if (asked === 0) return;
    values.compMask = 0;
    values.rawClock = await readClock(context);
    values.compMask = asked;
  });

async function readClock({ cpu, info }: IbvContext): Promise<number> {
  const at = info.coreClockBusAddress;
  if (at < 0)
    throw new VerbsError('ibv_query_rt_values_ex', 'EOPNOTSUPP', 'the device does not show its clock');
  const read = async (address: number): Promise<number> =>
    swap32(await cpu.mmioRead32(address, 'application')) >>> 0;
  let high = 0;
  let low = 0;
  for (let reads = 0; reads < clockReadsMax; reads++) {
    high = await read(at);
    low = await read(at + dwordBytes);
    if ((await read(at)) === high) break;
  }
  return high * 2 ** 32 + low;
}
