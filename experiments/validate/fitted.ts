/**
 * Parameters fitted to the measurements, with the rows that each was derived from. One set serves all rows of a card, a
 * host or a device. Software costs that a row states directly (post_send, system calls, registration) are not included.
 */
import { configurationOf, parametersByPath } from '../../machine/profile/index.ts';
import { apt } from './families/index.ts';
import { measuringDeviceNs } from './measuring-device.ts';

interface FittedParameter {
  readonly of: string;
  readonly name: string;
  readonly value: string;
  readonly rows: string;
}

const card = 'ConnectX-3';
const rowsOf: Readonly<Record<string, string>> = {
  'hca.transmitLatencyCycles': 'A-001, together with receiveLatencyCycles',
  'hca.sameQpIntervalCycles': 'A-088…A-094',
  'hca.readIntervalCycles': 'A-126…A-133',
  'hca.unreliableIntervalCycles': 'D-006',
  'hca.receivePacketCycles, hca.writeGapCycles': 'C-023, D-010, A-100',
  'hca.receiveHeadCycles': 'C-063…C-067, D-015',
  'hca.receiveBytesPerCycle, hca.gatherBytesPerCycle': 'C-068…C-073, C-096…C-102',
  'hca.wqeLineCycles': 'C-076…C-082',
  'hca.wqeBufferLines': 'C-092, C-093',
  'hca.gatherCycles': 'C-094',
  'hca.blueFlameWqes': 'D-026, D-045',
  'hca.sendContextEntries, hca.qpcCacheEntries': 'C-141, E-107',
  'hca.contextFetchesInFlight': 'C-141',
  'hca.sendContextRegisters': 'C-135, C-137',
  'hca.sendContextLoadCycles': 'C-136, C-137',
  'hca.qpcLinesPerContext': 'E-107',
  'hca.qpcCacheWays': 'E-053, E-081',
  'hca.qpcMissCycles': 'E-081…E-107',
  'hca.readSegmentCycles': 'E-033, E-035',
  'hca.readRequestCycles': 'C-103, E-001',
  'hca.readResponseCycles': 'C-040',
  'hca.readResponseBytesPerCycle': 'C-044…C-050',
  'hca.readResponseLatencyCycles, hca.cacheMissCycles': 'A-057, F-023',
  'hca.sendGapCycles, hca.readGapCycles': 'A-138, A-176',
  'pcie.rootComplex.readLatencyPs': 'A-087, A-011',
};
const aptRows: Readonly<Record<string, string>> = {
  'wire.switchLatencyNs': 'C-019',
  'host.core.clockMHz': 'C-124, C-133, C-142, C-143',
};
const connectx2Rows: Readonly<Record<string, string>> = {
  'hca.rnrTimerUnitNs': 'H-209',
  'hca.ackTimeoutUnitNs': 'H-219',
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
    return { of, name: paths, value: `${value as number}${unit}`, rows: from };
  });
}

export const fittedParameters = (): readonly FittedParameter[] => [
  ...ofConfiguration(card, rowsOf, { profile: 'connectx3-qdr-fitted' }),
  ...ofConfiguration('machines of the Apt cluster', aptRows, apt),
  ...ofConfiguration('ConnectX-2', connectx2Rows, { profile: 'connectx2-gen2' }),
  ...Object.entries(measuringDeviceNs).map(([name, ns]) => ({
    of: 'measuring device of group I',
    name,
    value: `${ns} ns`,
    rows: { command: 'I-001a', engine: 'I-005a', line: 'I-019…I-022', writeAccess: 'I-031, I-033' }[name]!,
  })),
];
