/** The number spaces of a device: how many there are, which are reserved, how they are reused (interface sheet 7.1, 7.2). */
import { specialQpBlock } from '../abi/qpc.ts';
import { NumberAllocator } from './allocator.ts';
import { type DeviceLimits, reservedUarsOf, specialQpBaseOf, uarCountOf } from './capabilities.ts';
import type { NumberSpaces } from './device.ts';
import type { IcmProfile } from './icm-profile.ts';

/** QPNs have 24 bits; bit 23 marks XRC by convention of Linux. */
const qpnMask = 0x7f_ffff;
/** Protection domains Linux hands out; the rest of the 24 bits serves as generation. */
const pdCount = 2 ** 17;

export function numberSpacesOf(limits: DeviceLimits, profile: IcmProfile): NumberSpaces {
  const uarCount = uarCountOf(limits);
  const { counts } = profile;
  return {
    pds: new NumberAllocator({
      name: 'PD',
      count: pdCount,
      reserved: limits.reservedPds,
      mask: 0xff_ffff,
      reuse: 'roundRobin',
    }),
    uars: new NumberAllocator({
      name: 'UAR',
      count: uarCount,
      reserved: reservedUarsOf(limits),
      mask: uarCount - 1,
      reuse: 'roundRobin',
    }),
    mpts: new NumberAllocator({
      name: 'MPT slot',
      count: counts.dmpt,
      reserved: 2 ** limits.logReservedMpts,
      mask: 0xffff_ffff,
      reuse: 'first',
    }),
    cqs: new NumberAllocator({
      name: 'CQN',
      count: counts.cqc,
      reserved: 2 ** limits.logReservedCqs,
      mask: counts.cqc - 1,
      reuse: 'first',
    }),
    srqs: new NumberAllocator({
      name: 'SRQN',
      count: counts.srqc,
      reserved: 2 ** limits.logReservedSrqs,
      mask: counts.srqc - 1,
      reuse: 'first',
    }),
    qps: new NumberAllocator({
      name: 'QPN',
      count: counts.qpc,
      reserved: specialQpBaseOf(limits) + specialQpBlock,
      mask: qpnMask,
      reuse: 'roundRobin',
    }),
  };
}
