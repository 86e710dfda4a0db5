/** What queryDevice tells (ibv_device_attr), derived from the device's limits as mlx4_ib does it. */
import { icmPageBytes } from '../abi/map-icm.ts';
import { srqNextSegment } from '../abi/wqe.ts';
import type { Device } from './device.ts';
import { responderResourcesOf } from './icm-profile.ts';
import type { NodeInfo } from './port.ts';
import type { DeviceAttr } from './uapi.ts';

/** Largest headroom of a send queue: 2 KiB of 64-byte blocks and one block. */
const sendHeadroomWqes = 2048 / 64 + 1;
const dataPointerBytes = 16;

/** Limits of queues, which a library checks before it asks. */
export function queueLimits(device: Device): {
  maxQpWr: number;
  maxSendSge: number;
  maxRecvSge: number;
  maxSrqWr: number;
  maxSrqSge: number;
  maxCqe: number;
} {
  const { limits } = device;
  return {
    maxQpWr: 2 ** limits.logMaxQpWqes - sendHeadroomWqes,
    maxSendSge: limits.maxSendScatterGather,
    maxRecvSge: limits.maxReceiveScatterGather,
    maxSrqWr: 2 ** limits.logMaxSrqWqes - 1,
    maxSrqSge: Math.floor((limits.maxReceiveDescriptorBytes - srqNextSegment.sizeBytes) / dataPointerBytes),
    maxCqe: 2 ** limits.logMaxCqEntries - 1,
  };
}

export function deviceAttributes(device: Device, node: NodeInfo): DeviceAttr {
  const { limits, profile, firmware, ports } = device;
  const available = (count: number, logReserved: number): number => count - 2 ** logReserved;
  const queues = queueLimits(device);
  const maxPkeys = Math.max(...ports.map((port) => port.pkeyCount));
  return {
    fwVer: [firmware.firmwareMajor, firmware.firmwareMinor, firmware.firmwareSubminor].join('.'),
    nodeGuid: node.nodeGuid,
    sysImageGuid: node.systemImageGuid,
    maxMrSize: 2 ** Math.min(limits.logMaxRegionBytes, 52),
    pageSizeCap: 2 ** 32 - Math.max(icmPageBytes, 2 ** limits.logMinPageBytes),
    vendorId: node.vendorId,
    vendorPartId: node.deviceId,
    hwVer: node.revision,
    maxQp: profile.counts.qpc - device.numbers.qps.range.reserved,
    maxQpWr: queues.maxQpWr,
    maxSge: Math.min(queues.maxSendSge, queues.maxRecvSge),
    maxCq: available(profile.counts.cqc, limits.logReservedCqs),
    maxCqe: queues.maxCqe,
    maxMr: available(profile.counts.dmpt, limits.logReservedMpts),
    maxPd: device.numbers.pds.range.count - limits.reservedPds,
    maxQpRdAtom: responderResourcesOf(profile),
    maxResRdAtom: profile.counts.rdmarc,
    maxQpInitRdAtom: 2 ** limits.logMaxRequesterReads,
    maxAh: 2 ** 31 - 1,
    maxSrq: available(profile.counts.srqc, limits.logReservedSrqs),
    maxSrqWr: queues.maxSrqWr,
    maxSrqSge: queues.maxSrqSge,
    maxPkeys,
    localCaAckDelay: limits.localCaAckDelay,
    physPortCnt: ports.length,
  };
}
