/** A probed device: the parts that resources share. Built by `probe.ts`, which defines the order; the file of each resource uses what it needs. */

import type { DeviceLimits, Firmware } from './capabilities.ts';
import type { CommandInterface } from './command-interface.ts';
import type { DeviceLifecycle } from './device-lifecycle.ts';
import type { EventQueue } from './event-queue.ts';
import type { EventRouter } from './event-router.ts';
import type { IcmProfile, MappedTable } from './icm-profile.ts';
import type { IcmTable } from './icm-table.ts';
import type { IwarpQps } from './iwarp/iwarp-qps.ts';
import type { MttTable } from './mtt-table.ts';
import type { MulticastTable } from './multicast-table.ts';
import type { NumberAllocator } from './number-allocator.ts';
import type { Pager } from './on-demand/index.ts';
import type { DriverConfig } from './parameters.ts';
import type { SavedConfiguration } from './pci.ts';
import type { DriverPlatform } from './platform.ts';
import type { Port } from './port.ts';
import type { XrcDomains } from './xrc-domain.ts';

export type IcmTables = { readonly [Name in MappedTable]: IcmTable };

/** Allocators of object numbers. */
export interface NumberSpaces {
  readonly pds: NumberAllocator;
  readonly xrcds: NumberAllocator;
  readonly uars: NumberAllocator;
  readonly mpts: NumberAllocator;
  readonly cqs: NumberAllocator;
  readonly srqs: NumberAllocator;
  readonly qps: NumberAllocator;
}

export interface Device {
  readonly name: string;
  readonly platform: DriverPlatform;
  readonly config: DriverConfig;
  readonly commands: CommandInterface;
  readonly lifecycle: DeviceLifecycle;
  /** Configuration space as firmware left it: restored when the device returns to its slot. */
  readonly configuration: SavedConfiguration;
  readonly firmware: Firmware;
  readonly limits: DeviceLimits;
  readonly profile: IcmProfile;
  readonly icm: IcmTables;
  readonly numbers: NumberSpaces;
  readonly mtts: MttTable;
  readonly router: EventRouter;
  readonly xrcDomains: XrcDomains;
  readonly multicast: MulticastTable;
  /** On-demand regions. */
  readonly pager: Pager;
  /** The queue of asynchronous events and command completions. */
  readonly asyncEq: EventQueue;
  /** Completion event queues, by completion vector. */
  readonly completionEqs: readonly EventQueue[];
  readonly ports: readonly Port[];
  /** With iWARP: the QPs that connections can find. */
  readonly iwarpQps: IwarpQps | undefined;
  readonly nodeGuid: bigint;
  readonly systemImageGuid: bigint;
  /** Board name from QUERY_ADAPTER, and clock from QUERY_HCA. */
  readonly boardId: string;
  readonly coreClockMhz: number;
}
