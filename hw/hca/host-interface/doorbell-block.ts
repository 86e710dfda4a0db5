/** The block that decodes software's writes to a card's doorbells, as the device and its neighbours see it. */
import type { Cycles } from '../../../base/index.ts';
import type { Block, BlockAccount } from '../../../sim/index.ts';
import type { Translator } from '../memory/index.ts';
import type { CqSlot, CqTable, QpTable } from '../objects/index.ts';
import type { HcaConfig } from '../parameters.ts';
import type { WorkArrivals, WqeLines } from '../send-queue/index.ts';
import type { ViolationCounters } from '../statistics/index.ts';

/** Parts of the device that a doorbell block uses. */
export interface DoorbellParts {
  readonly config: Pick<HcaConfig, 'doorbellCycles' | 'blueFlameWqes'>;
  readonly qps: QpTable;
  readonly cqs: CqTable;
  readonly sramView: DataView;
  readonly translator: Translator;
  readonly lines: WqeLines;
  readonly violations: ViolationCounters;
}

export interface EqDoorbells {
  eqDoorbell(eqn: number, consumer: number, isArm: boolean, cycle: Cycles): void;
}

export interface DoorbellPorts {
  readonly arrivals: WorkArrivals;
  /** Arms a CQ. */
  readonly notifier: { arm(cq: CqSlot, command: number, consumer: number, cycle: Cycles): void };
  readonly eventQueues: EqDoorbells;
}

export interface DoorbellBlock extends Block {
  readonly account: BlockAccount;
  /** Writes since power-on by kind: send doorbells, WQEs in the write itself, CQ arms, EQ doorbells, invalidations. */
  readonly sendCount: number;
  readonly blueFlameCount: number;
  /** BlueFlame posts whose WQE is read from memory all the same. */
  readonly blueFlameFromMemoryCount: number;
  readonly armCount: number;
  readonly eqCount: number;
  readonly invalidateCount: number;
  connect(ports: DoorbellPorts): void;
  /**
   * Handles a write of `lengthBytes` at `view[byteOffset]` to `offset` of the doorbells' BAR.
   * @returns cycles that it occupies the port
   */
  barWrite(offset: number, view: DataView, byteOffset: number, lengthBytes: number, cycle: Cycles): number;
}
