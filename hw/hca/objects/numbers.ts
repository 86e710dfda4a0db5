/**
 * Two names of an object: the number by which software and the wire know it, and its slot in the device's tables. Both
 * are small integers, but object numbers exceed the length of a table; distinct types keep them apart, at no cost.
 */
import type { Unit } from '../../../base/index.ts';

export type ObjectNumber<Kind extends string> = Unit<`${Kind} number`>;
export type Slot<Kind extends string> = Unit<`${Kind} slot`>;

export type Qpn = ObjectNumber<'QP'>;
export type Cqn = ObjectNumber<'CQ'>;
export type QpSlot = Slot<'QP'>;
export type CqSlot = Slot<'CQ'>;
export type SrqSlot = Slot<'SRQ'>;
export type EqSlot = Slot<'EQ'>;
