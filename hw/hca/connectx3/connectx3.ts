/** The host interface of the ConnectX-3. */
import { gatewayOffset } from '../../../abi/index.ts';
import type { CapabilityConfig } from '../capabilities.ts';
import type { Personality } from '../host-interface/index.ts';
import { emptyEntries } from './commands/index.ts';
import { completionFormat } from './completion-format.ts';
import { ConnectX3CommandSet } from './connect-x3-command-set.ts';
import { cqContext } from './cq-context.ts';
import { type DoorbellGeometry, Doorbells } from './doorbells.ts';
import { eqContext } from './eq-context.ts';
import { eventFormat } from './event-format.ts';
import { IcmMap } from './icm-map.ts';
import { mptFormat } from './mpt-entry.ts';
import { mttFormat } from './mtt-entry.ts';
import { QpContext } from './qp-context.ts';
import { receiveFormat } from './receive-format.ts';
import { ConnectX3SendFormat } from './send-format.ts';
import { srqContext } from './srq-context.ts';

const MIB = 1 << 20;

/** @param icm of the device; specs that play its firmware pass their own */
export const connectX3 = (geometry: DoorbellGeometry, icm = new IcmMap()): Personality => ({
  gatewayAddress: gatewayOffset.address,
  contextMemory: icm,
  keys: mptFormat,
  translations: mttFormat,
  events: eventFormat,
  fillPatterns: emptyEntries,
  makeContextFormats: (ports) => ({
    queuePairs: new QpContext(ports),
    completionQueues: cqContext,
    sharedQueues: srqContext,
    eventQueues: eqContext,
  }),
  makeFormats: (parts) => ({
    sends: new ConnectX3SendFormat(parts),
    receives: receiveFormat,
    completions: completionFormat,
  }),
  makeDoorbells: (parts) => new Doorbells(parts, geometry),
  makeCommandSet: (parts) => new ConnectX3CommandSet(parts, icm),
});

/** The card as its capabilities report it: its doorbells are in pages of BAR2. */
export const connectX3Of = ({
  logUarAreaMib,
  logBlueFlameRegisterBytes,
}: Pick<CapabilityConfig, 'logUarAreaMib' | 'logBlueFlameRegisterBytes'>): Personality =>
  connectX3({
    uarAreaBytes: 2 ** logUarAreaMib * MIB,
    blueFlameHalfBytes: 2 ** (logBlueFlameRegisterBytes - 1),
  });
