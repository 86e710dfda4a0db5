/**
 * Parameters fitted to the measurements, with the rows that each was derived from. One set serves all rows of a card, a
 * host or a device. Software costs that a row states directly (post_send, system calls, registration) are not included.
 */
import { configurationOf, parametersByPath } from '../../machine/profile/index.ts';
import { cardValues } from './card-values.ts';
import {
  apt,
  isolationLoopNs,
  isolationMtuBytes,
  rfpInlineBytes,
  rfpSectionNs,
  sourceMachines,
} from './families/index.ts';
import { measuringDeviceNs } from './measuring-device.ts';

interface FittedParameter {
  readonly of: string;
  readonly name: string;
  readonly value: string;
  readonly rows: string;
}

const card = 'ConnectX-3';
const rowsOf = Object.fromEntries(Object.entries(cardValues).map(([paths, { rows }]) => [paths, rows]));
/** Choices between mechanisms, which no refit changes. */
const cardChoices: Readonly<Record<string, string>> = { 'dma.readArbitration': 'A-014, A-015' };
const aptRows: Readonly<Record<string, string>> = {
  'wire.switchLatencyNs': 'C-019',
  'host.core.clockMHz': 'C-124, C-133, C-142, C-143',
};
const connectx2Rows: Readonly<Record<string, string>> = {
  'hca.rnrTimerUnitNs': 'H-209',
  'hca.ackTimeoutUnitNs': 'H-219',
  'hca.sameQpIntervalCycles': 'H-071',
  'hca.unreliableIntervalCycles': 'H-187',
  'hca.transmitLatencyCycles, hca.receiveLatencyCycles': 'H-001, H-035',
  'hca.transmitBytesPerCycle, hca.receiveBytesPerCycle': 'H-035',
  'pcie.link.packetAlignmentBytes': 'H-139',
  'pcie.rootComplex.completionCombineBytes': 'H-099',
};

/** A ConnectX-2 shares the time of an atomic. */
const connectx5Rows: Readonly<Record<string, string>> = {
  'hca.readResponseCycles': 'T-126',
  'hca.atomicWriteBackCycles': 'T-134',
};

function ofConfiguration(
  of: string,
  rows: Readonly<Record<string, string>>,
  choice: Parameters<typeof configurationOf>[0],
): FittedParameter[] {
  const config = configurationOf(choice);
  return Object.entries(rows).map(([paths, from]) => {
    // Parameters with equal values are one.
    const [path] = paths.split(', ') as [string];
    const parameter = parametersByPath.get(path)!;
    const unit = 'unit' in parameter ? ` ${parameter.unit}` : '';
    const value = path
      .split('.')
      .reduce<unknown>((group, name) => (group as Record<string, unknown>)[name], config);
    return { of, name: paths, value: `${String(value)}${unit}`, rows: from };
  });
}

export const fittedParameters = (): readonly FittedParameter[] => [
  ...ofConfiguration(card, { ...rowsOf, ...cardChoices }, { profile: 'connectx3-qdr-fitted' }),
  ...ofConfiguration('machines of the Apt cluster', aptRows, apt),
  ...ofConfiguration('ConnectX-2', connectx2Rows, { profile: 'connectx2-gen2' }),
  ...ofConfiguration('ConnectX-5', connectx5Rows, { profile: 'connectx5-100gbe' }),
  ...sourceMachines.flatMap(({ of, fitted, set }) => ofConfiguration(of, fitted, { set })),
  {
    of: 'hosts of Performance Isolation Anomalies',
    name: 'path MTU',
    value: `${isolationMtuBytes} bytes`,
    rows: 'G-041',
  },
  {
    of: 'hosts of Performance Isolation Anomalies',
    name: 'from a completion to the next post, Fig 2',
    value: `${isolationLoopNs} ns`,
    rows: 'G-058',
  },
  ...[
    { name: 'section of a post', value: `${rfpSectionNs.post} ns`, rows: 'G-009' },
    { name: 'section of a post, for each thread', value: `${rfpSectionNs.thread} ns`, rows: 'G-004' },
    { name: 'WRITEs inlined up to', value: `${rfpInlineBytes} bytes`, rows: 'G-001' },
  ].map((one) => ({ of: 'hosts of RFP', ...one })),
  ...ofConfiguration('IOMMU of group I’s hosts', { 'pcie.iommu.walksInFlight': 'I-267' }, {}),
  ...Object.entries(measuringDeviceNs).map(([name, ns]) => ({
    of: 'measuring device of group I',
    name,
    value: `${ns} ns`,
    rows: { command: 'I-001a', engine: 'I-005a', line: 'I-019…I-022', writeAccess: 'I-031, I-033' }[name]!,
  })),
];
