/**
 * The part of a device's evidence that depends on its transport. The journal of the device keeps what every transport
 * has (QPs, CQs, regions, completions), and asks the transport's journal for the rest.
 */
import type { SendRecord } from '../../hw/hca/index.ts';
import type { DeviceEvidence, InstantPs, QpEvidence, QpStateName, StateChange } from './evidence.ts';

/** Fields that change while a QP lives. */
export type LiveQp = { -readonly [K in keyof QpEvidence]: QpEvidence[K] } & {
  states: StateChange[];
};

/** The living QPs of a device, as the journal of its transport sees them. */
export interface LiveQps {
  readonly nowPs: InstantPs;
  ofSlot(slot: number): LiveQp | undefined;
  ofQpn(qpn: number): LiveQp | undefined;
  /** A request was served: the run makes progress. */
  progressed(): void;
}

export type TransportEvidence = Pick<DeviceEvidence, 'drops' | 'refusals' | 'streams'> & {
  readonly omitted: number;
};

export interface TransportJournal {
  /** A command has configured a QP and takes it from `qp.state` to `next`. */
  configured(qp: LiveQp, slot: number, next: QpStateName): void;
  /** Number of the first packet of a request that is under way. */
  firstPsnOf(request: SendRecord): number;
  /** Its evidence so far, as plain data. */
  collect(): TransportEvidence;
}
