/** Result of queryDevice (ibv_device_attr), derived from the device's limits as in mlx4_ib. */
import {
  CapabilityFlag,
  cqc,
  hasCapability,
  hasFlag,
  MemoryManagementFlag,
  mcgMembersMax,
  srqNextSegment,
} from '../abi/index.ts';
import { log2Exact } from '../base/index.ts';
import { type DeviceLimits, hasIwarp } from './capabilities.ts';
import type { Device } from './device.ts';
import { mcgEntryBytes, responderResourcesOf } from './icm-profile.ts';
import type { NodeInfo } from './port.ts';
import { type DeviceAttr, DeviceCapFlag } from './uapi.ts';

/** Largest headroom of a send queue: 2 KiB in 64-byte blocks, plus one block. */
const sendHeadroomWqes = 2048 / 64 + 1;
const dataPointerBytes = 16;

/** Limits of queues, which a library checks before it requests one. */
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

/** Data segments of a READ: a WQE of 512 bytes minus control and remote address segments (MLX4_MAX_SGE_RD). */
const maxSgeRd = (512 - 16 - 16) / dataPointerBytes;
const timestampBits = 48n;
const atomicWithinHca = 1;

/** Limit of inline receives as in mlx4_ib: a list holds as many entries as the data pointers allow. */
export const inlineReceiveBytesMax = ({ limits }: Device): number =>
  limits.maxReceiveScatterGather * dataPointerBytes;

/** Capabilities that mlx4_ib sets unconditionally, and the device's counters. */
function capFlagsOf(limits: DeviceLimits): number {
  const { capabilityFlags } = limits;
  const counters =
    (hasCapability(capabilityFlags, CapabilityFlag.BAD_PKEY_CNTR) ? DeviceCapFlag.BAD_PKEY_CNTR : 0) |
    (hasCapability(capabilityFlags, CapabilityFlag.BAD_QKEY_CNTR) ? DeviceCapFlag.BAD_QKEY_CNTR : 0);
  const { CHANGE_PHY_PORT, PORT_ACTIVE_EVENT, SYS_IMAGE_GUID, RC_RNR_NAK_GEN, RAW_IP_CSUM } = DeviceCapFlag;
  return (
    counters |
    (hasCapability(capabilityFlags, CapabilityFlag.XRC) ? DeviceCapFlag.XRC : 0) |
    memoryFlagsOf(limits) |
    CHANGE_PHY_PORT |
    PORT_ACTIVE_EVENT |
    SYS_IMAGE_GUID |
    (hasIwarp(limits) ? 0 : RC_RNR_NAK_GEN) |
    RAW_IP_CSUM
  );
}

/** Key operations of work requests: local invalidate, remote invalidate and fast registration share one flag. */
function memoryFlagsOf({ capabilityFlags, memoryManagementFlags: flags }: DeviceLimits): number {
  const { LOCAL_INV, REMOTE_INV, FAST_REG_WR, TYPE_2_WIN, TYPE_2_WIN_2B } = MemoryManagementFlag;
  const hasExtensions = [LOCAL_INV, REMOTE_INV, FAST_REG_WR].every((bit) => hasFlag(flags, bit));
  const hasType2 = hasFlag(flags, TYPE_2_WIN) && hasFlag(flags, TYPE_2_WIN_2B);
  return (
    (hasCapability(capabilityFlags, CapabilityFlag.MEM_WINDOW) ? DeviceCapFlag.MEM_WINDOW : 0) |
    (hasExtensions ? DeviceCapFlag.MEM_MGT_EXTENSIONS : 0) |
    (hasType2 ? DeviceCapFlag.MEM_WINDOW_TYPE_2B : 0)
  );
}

/**
 * The attributes, computed from the answers of QUERY_DEV_CAP, QUERY_FW, QUERY_ADAPTER and QUERY_HCA and from the profile
 * of the tables. Source: Linux 6.1, drivers/infiniband/hw/mlx4/main.c, mlx4_ib_query_device.
 */
export function deviceAttributes(device: Device, node: NodeInfo): DeviceAttr {
  const { limits, profile, firmware, ports, numbers } = device;
  const { counts } = profile;
  const available = (count: number, logReserved: number): number => count - 2 ** logReserved;
  const queues = queueLimits(device);
  const maxQp = numbers.qps.available;
  const maxSge = Math.min(queues.maxSendSge, queues.maxRecvSge);
  const maxQpRdAtom = responderResourcesOf(profile);
  const maxMcastQpAttach = mcgMembersMax(log2Exact(mcgEntryBytes));
  const atomicCap = hasCapability(limits.capabilityFlags, CapabilityFlag.ATOMIC) ? atomicWithinHca : 0;
  return {
    fwVer: [firmware.firmwareMajor, firmware.firmwareMinor, firmware.firmwareSubminor].join('.'),
    nodeGuid: node.nodeGuid,
    sysImageGuid: node.systemImageGuid,
    maxMrSize: 2n ** 64n - 1n,
    pageSizeCap: 2 ** 32 - 2 ** limits.logMinPageBytes,
    vendorId: node.vendorId,
    vendorPartId: node.deviceId,
    hwVer: node.revision,
    boardId: device.boardId,
    maxQp,
    maxQpWr: queues.maxQpWr,
    deviceCapFlags: capFlagsOf(limits),
    maxSge,
    maxInlRecvSz: inlineReceiveBytesMax(device),
    maxSgeRd: Math.min(maxSge, maxSgeRd),
    maxCq: available(counts.cqc, limits.logReservedCqs),
    maxCqe: queues.maxCqe,
    maxMr: available(counts.dmpt, limits.logReservedMpts),
    maxPd: numbers.pds.available,
    maxQpRdAtom,
    maxResRdAtom: maxQpRdAtom * maxQp,
    maxQpInitRdAtom: 2 ** limits.logMaxRequesterReads,
    atomicCap,
    // Masked atomics have no bit of their own, as in mlx4_ib.
    maskedAtomicCap: atomicCap,
    maxMcastGrp: counts.mcg,
    maxMcastQpAttach,
    maxTotalMcastQpAttach: maxMcastQpAttach * counts.mcg,
    maxAh: 2 ** 31 - 1,
    maxSrq: available(counts.srqc, limits.logReservedSrqs),
    maxSrqWr: queues.maxSrqWr,
    maxSrqSge: queues.maxSrqSge,
    maxPkeys: Math.max(...ports.map((port) => port.pkeyCount)),
    localCaAckDelay: limits.localCaAckDelay,
    completionTimestampMask: 2n ** timestampBits - 1n,
    hcaCoreClockKhz: device.coreClockMhz * 1000,
    maxCqModerationCount: cqc.fields.moderationCount.mask,
    maxCqModerationPeriodUs: cqc.fields.moderationPeriodUs.mask,
    physPortCnt: ports.length,
    ...(hasIwarp(limits) ? ofIwarp : {}),
  };
}

/** iWARP has neither multicast, address handles, partitions nor acknowledgements (Linux, cxgb4's provider.c: c4iw_query_device). */
const ofIwarp: Partial<DeviceAttr> = {
  maxMcastGrp: 0,
  maxMcastQpAttach: 0,
  maxTotalMcastQpAttach: 0,
  maxAh: 0,
  maxPkeys: 0,
  localCaAckDelay: 0,
};
