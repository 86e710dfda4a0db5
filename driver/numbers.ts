/** The number spaces of a device: how many exist, which are reserved, how they are reused (interface sheet 7.1, 7.2). */
import { specialQpBlock, xrcTargetBit } from '../abi/index.ts';
import { type DeviceLimits, reservedUarsOf, specialQpBaseOf, uarCountOf } from './capabilities.ts';
import type { NumberSpaces } from './device.ts';
import type { IcmProfile } from './icm-profile.ts';
import { NumberAllocator } from './number-allocator.ts';

/** QPNs have 24 bits. */
const qpnMask = xrcTargetBit - 1;
/** Protection domains Linux hands out (MLX4_NUM_PDS), and the bits of their numbers, generation included. */
const pdCount = 2 ** 15;
const pdMask = 2 ** 17 - 1;

export function numberSpacesOf(limits: DeviceLimits, profile: IcmProfile): NumberSpaces {
  const uarCount = uarCountOf(limits);
  const { counts } = profile;
  const xrcDomains = 2 ** limits.logMaxXrcDomains;
  const firstQpn = specialQpBaseOf(limits) + specialQpBlock;
  return {
    pds: new NumberAllocator({
      name: 'PD',
      count: pdCount,
      reserved: limits.reservedPds,
      end: pdCount,
      mask: pdMask,
      reuse: 'roundRobin',
    }),
    xrcds: new NumberAllocator({
      name: 'XRC domain',
      count: xrcDomains,
      // Linux treats SRQs without a domain as members of the first domain that firmware has not reserved.
      reserved: Math.min(limits.reservedXrcDomains + 1, xrcDomains),
      end: Math.max(xrcDomains - 1, limits.reservedXrcDomains + 1),
      mask: xrcDomains - 1,
      reuse: 'roundRobin',
    }),
    uars: new NumberAllocator({
      name: 'UAR',
      count: uarCount,
      reserved: reservedUarsOf(limits),
      end: uarCount,
      mask: uarCount - 1,
      reuse: 'roundRobin',
    }),
    mpts: new NumberAllocator({
      name: 'MPT slot',
      count: counts.dmpt,
      reserved: 2 ** limits.logReservedMpts,
      end: counts.dmpt,
      mask: 0xffff_ffff,
      reuse: 'first',
    }),
    cqs: new NumberAllocator({
      name: 'CQN',
      count: counts.cqc,
      reserved: 2 ** limits.logReservedCqs,
      end: counts.cqc,
      mask: counts.cqc - 1,
      reuse: 'first',
    }),
    srqs: new NumberAllocator({
      name: 'SRQN',
      count: counts.srqc,
      reserved: 2 ** limits.logReservedSrqs,
      end: counts.srqc,
      mask: counts.srqc - 1,
      reuse: 'first',
    }),
    qps: new NumberAllocator({
      name: 'QPN',
      count: counts.qpc,
      reserved: firstQpn,
      end: firstQpn + ordinaryQpsOf(limits, counts.qpc, firstQpn),
      mask: qpnMask,
      reuse: 'roundRobin',
    }),
  };
}

/**
 * QPs that programs can have, as mlx4_core counts them: it sets numbers aside for Ethernet and FCoE addresses (128 MACs of 128
 * VLANs, twice, on each port) and for FCoE exchanges, for every type of port. A table too small for that, which Linux never
 * makes, holds ordinary QPs only. Source: Linux 6.1, drivers/net/ethernet/mellanox/mlx4/main.c (reserved_qps_cnt,
 * mlx4_init_quotas).
 */
function ordinaryQpsOf(limits: DeviceLimits, qpCount: number, firstQpn: number): number {
  const setAside = setAsideOf(limits);
  return setAside < qpCount ? qpCount - setAside : qpCount - firstQpn;
}

const addressQpsPerPort = 128 * 128;
const exchangeQps = 64 * 1024;
const macsPerPort = 128;

const setAsideOf = ({ logReservedQps, ports }: DeviceLimits): number =>
  2 ** logReservedQps + 2 * addressQpsPerPort * ports + exchangeQps + specialQpBlock;

/**
 * The QP of frames for a port's first MAC, from those set aside for Ethernet addresses. Exchanges are on top, addresses below
 * (mlx4_init_qp_table), and each port has one per MAC (mlx4_get_base_qpn). -1 if the table is too small for that.
 */
export function frameQpnOf(limits: DeviceLimits, { counts: { qpc } }: IcmProfile, port: number): number {
  if (setAsideOf(limits) >= qpc) return -1;
  return qpc - exchangeQps - addressQpsPerPort * limits.ports + (port - 1) * macsPerPort;
}
