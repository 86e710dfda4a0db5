/** Objects that a context keeps, their users, and the attributes that the library needs. */
import { cqeBytes } from '../abi/index.ts';
import type { BlockingQueue } from './blocking-queue.ts';
import type { CompletionQueue } from './cq.ts';
import type { Device } from './device.ts';
import { queueLimits } from './device-attributes.ts';
import type { EventSink } from './event-router.ts';
import { KernelError } from './kernel-error.ts';
import type { ContextInfo } from './kernel-verbs.ts';
import type { MemoryRegion } from './mr.ts';
import type { MemoryWindow } from './mw.ts';
import type { QueuePair } from './qp.ts';
import type { SharedTarget } from './shared-target.ts';
import type { SharedReceiveQueue } from './srq.ts';
import type { Handle } from './uapi.ts';
import type { UserUar } from './uar.ts';
import type { XrcDomain } from './xrc-domain.ts';

/** An object from which others are created. */
export interface Counted {
  users: number;
}
export interface PdObject extends Counted {
  readonly pdn: number;
}
export interface RegionObject {
  readonly region: MemoryRegion;
  pd: PdObject;
}
export interface WindowObject {
  readonly window: MemoryWindow;
  readonly pd: PdObject;
}
export interface ChannelObject extends Counted {
  readonly events: BlockingQueue<Handle>;
}
export interface CqObject extends Counted {
  readonly cq: CompletionQueue;
  readonly channel: ChannelObject | undefined;
  reportedEvents: number;
}
/** A domain as one context has opened it. */
export interface XrcdObject extends Counted {
  readonly domain: XrcDomain;
}
export interface SrqObject extends Counted {
  readonly srq: SharedReceiveQueue;
  readonly parts: readonly Counted[];
  limit: number;
}
/** A group as a program names it. */
export interface MulticastMember {
  readonly gid: Uint8Array;
  readonly lid: number;
}
export interface QpObject {
  readonly qp: QueuePair;
  readonly parts: readonly Counted[];
  /** Multicast groups that the program has attached it to. */
  readonly groups: MulticastMember[];
  readonly blocksLoopback: boolean;
  /** State of an XRC target that is shared with other openers, and the destination of its events in this context. */
  readonly target?: {
    readonly shared: SharedTarget;
    readonly sink: EventSink;
    readonly domain: XrcDomain;
  };
}

/** Returns the object if it has no users; otherwise throws EBUSY. */
export function unused<T extends Counted>(object: T, kind: string): T {
  if (object.users > 0) throw new KernelError('EBUSY', `the ${kind} has ${object.users} users`);
  return object;
}

/** Returns the address of the clock page; as in Linux, -1 unless the device lets programs see the page. */
function coreClockBusAddressOf({ limits, firmware, platform }: Device): number {
  if (limits.cqeTimestamps === 0 || limits.clockPageInUserSpace === 0) return -1;
  return platform.pci.bars[firmware.clockBar * 2]!.address + Number(firmware.clockOffset);
}

/** Attributes of the device and of the doorbell page that a library needs. */
export function contextInfo(device: Device, uar: UserUar): ContextInfo {
  return {
    deviceName: device.name,
    qpTableSize: device.profile.counts.qpc,
    uarPage: uar.page,
    uarUserAddress: uar.userAddress,
    uarBusAddress: uar.busAddress,
    blueFlameRegisterBytes: uar.blueFlameRegisterBytes,
    blueFlameBusAddress: uar.blueFlameBusAddress,
    coreClockBusAddress: coreClockBusAddressOf(device),
    isBlueFlameForAll: device.config.blueFlameForAll,
    cqeBytes,
    completionVectors: device.completionEqs.length,
    linkLayers: device.ports.map(({ linkLayer }) => linkLayer),
    ...queueLimits(device),
  };
}
