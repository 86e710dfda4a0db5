/**
 * State that commands share: how far software has brought the device up, and the parts of the HCA that they work on.
 *
 *   off ──MAP_FA, RUN_FW──> firmware ──SET_ICM_SIZE, MAP_ICM_AUX, MAP_ICM, INIT_HCA──> initialised
 *    ^──────UNMAP_FA──────────^──────────────────────────CLOSE_HCA──────────────────────────┘
 *
 * Source: interface sheet 3.6, 3.10, 8.1, 8.4.
 */

import { initHca } from '../../../../abi/index.ts';
import type { Cycles, Decoded } from '../../../../base/index.ts';
import type { BlockState } from '../../../../sim/index.ts';
import type { CommandSetParts, CommandSetPorts } from '../../host-interface/index.ts';
import type { MulticastGroups } from '../../ibta/receiver/index.ts';
import type { IcmMap } from '../icm-map.ts';

/** Phases of initialisation; each command needs at least one of these. */
export const SystemPhase = { OFF: 0, FIRMWARE: 1, INITIALISED: 2 } as const;
export type SystemPhase = (typeof SystemPhase)[keyof typeof SystemPhase];

/** The configuration of INIT_HCA, as fields. */
export type HcaProfile = Decoded<typeof initHca>;

/** Parts of the device that commands use. */
export interface DeviceSetup extends CommandSetParts {
  readonly icm: IcmMap;
}

export type DeviceStatePorts = Pick<CommandSetPorts, 'dataPath' | 'events' | 'drains' | 'tcp'>;

export type DeviceParts = DeviceSetup & DeviceStatePorts;

export class DeviceState {
  parts!: DeviceParts;
  readonly #setup: DeviceSetup;
  phase: SystemPhase = SystemPhase.OFF;
  /** Auxiliary pages that SET_ICM_SIZE requested; 0 before it. */
  auxiliaryPagesWanted = 0;
  /** The mailbox of INIT_HCA, as bytes and as fields; undefined before it. */
  profileBytes = new Uint8Array(initHca.sizeBytes);
  profile: HcaProfile | undefined;
  /** First special QP of CONF_SPECIAL_QP, or 0. */
  specialQpBase = 0;
  /** Multicast entries that are not empty, by index; default entries by port and steering, as WRITE_MCG numbers them. */
  readonly groups: MulticastGroups;
  readonly defaultGroups = new Map<number, Uint8Array>();
  /** MPT entries that were passed to hardware at least once. */
  readonly knownMpts = new Set<number>();
  /** MPT entries passed to hardware and not yet returned by a command. */
  readonly liveMpts = new Set<number>();
  /** QPN that occupies each context of the QPC table: two QPNs may share an index, not a context. */
  readonly qpnOfIndex = new Map<number, number>();
  /** Number of the next rule of flow steering. */
  nextFlowRule = 1;

  constructor(setup: DeviceSetup) {
    this.#setup = setup;
    this.groups = setup.groups;
  }

  connect(ports: DeviceStatePorts): void {
    this.parts = { ...this.#setup, ...ports };
  }

  /** CLOSE_HCA: forgets every context; mappings stay. */
  closeHca(cycle: Cycles): void {
    const { qps, cqs, srqs, eqs, events, icm, dataPath, drains, ports } = this.parts;
    for (const port of ports) {
      port.close(cycle);
      port.ethernet?.steering.manage(false);
    }
    dataPath.resetAll();
    for (const table of [qps, cqs, srqs, eqs]) table.clear();
    events.reset(cycle);
    icm.forgetTables();
    this.profile = undefined;
    this.profileBytes = new Uint8Array(initHca.sizeBytes);
    this.specialQpBase = 0;
    this.groups.clear();
    this.defaultGroups.clear();
    this.knownMpts.clear();
    this.liveMpts.clear();
    this.qpnOfIndex.clear();
    drains.reset();
    this.nextFlowRule = 1;
    if (this.phase === SystemPhase.INITIALISED) this.phase = SystemPhase.FIRMWARE;
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    const { phase, auxiliaryPagesWanted, profileBytes, specialQpBase, parts } = this;
    return {
      phase,
      auxiliaryPagesWanted,
      profile: [...profileBytes].findLastIndex((byte) => byte !== 0) + 1 === 0 ? 'none' : 'given',
      specialQpBase,
      groups: this.groups.count,
      defaultGroups: [...this.defaultGroups.keys()],
      knownMpts: [...this.knownMpts],
      liveMpts: [...this.liveMpts],
      qpnOfIndex: Object.fromEntries(this.qpnOfIndex),
      mappedPages: parts.icm.mappedPageCount,
      live: [parts.qps, parts.cqs, parts.srqs, parts.eqs].map(({ liveCount }) => liveCount),
    };
  }

  /** Reset: as after power-on. */
  reset(cycle: Cycles): void {
    this.closeHca(cycle);
    for (const port of this.parts.ports) port.reset();
    this.parts.agents.reset();
    for (const manager of this.parts.managers) manager.reset();
    this.parts.node.reset();
    this.parts.icm.reset();
    this.phase = SystemPhase.OFF;
    this.auxiliaryPagesWanted = 0;
  }
}
