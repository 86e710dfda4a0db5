/** The error to expect of a figure that nothing was fitted to. */
import type { MachineConfig } from '../../machine/profile/index.ts';
import { errorBands } from './error-bands.ts';

export type FigureKind = 'latency' | 'message rate' | 'bandwidth';
export type Network = 'infiniband' | 'ethernet' | 'iwarp';

/** Eight of ten measured rows have an error between `low` and `high`, relative to the measured value. */
export interface ErrorBand {
  readonly rows: number;
  /** Publications and logs that the rows are from. */
  readonly sources: number;
  readonly low: number;
  readonly high: number;
}

/** Fewer rows, or rows of one source, are no evidence for another machine. */
const rowsMin = 10;
const sourcesMin = 2;
/** Messages of this size or more are counted by their bytes, smaller ones by their number. */
const bandwidthMinBytes = 2048;

/** The kind of a test's figure, by the size of its messages. */
export const figureKindOf = (isLatency: boolean, sizeBytes: number): FigureKind => {
  if (isLatency) return 'latency';
  return sizeBytes >= bandwidthMinBytes ? 'bandwidth' : 'message rate';
};

/** The network of a card: bands are of one, because the costs of another are other ones. */
export const networkOf = ({ hca }: Pick<MachineConfig, 'hca'>): Network => {
  const { linkLayer, transport } = hca.capability;
  if (transport === 'iwarp') return 'iwarp';
  return linkLayer === 'ethernet' ? 'ethernet' : 'infiniband';
};

export const bandKey = (network: Network, kind: FigureKind, verb: string): string =>
  `${network} ${verb} ${kind}`;

const signed = (share: number): string => {
  const percent = Math.round(share * 100);
  return `${percent < 0 ? '−' : '+'}${Math.abs(percent)} %`;
};

const names: Readonly<Record<Network, string>> = {
  infiniband: 'InfiniBand',
  ethernet: 'RoCE',
  iwarp: 'iWARP',
};

/** A sentence for the reader of a figure of a test over reliable connections. */
export function errorSentence(
  network: Network,
  kind: FigureKind,
  verb: string,
  bands: Readonly<Record<string, ErrorBand>> = errorBands,
): string {
  const band = bands[bandKey(network, kind, verb)];
  const what = `a ${kind} of ${verb.toUpperCase()} over ${names[network]}`;
  if (band === undefined || band.rows < rowsMin || band.sources < sourcesMin)
    return `Expected error of ${what}: unknown; too few measurements that nothing was fitted to.`;
  const { rows, sources, low, high } = band;
  return `Expected error of ${what}: ${signed(low)} to ${signed(high)}, as for eight in ten of ${rows} measurements of ${sources} sources that nothing was fitted to, with the fitted profiles (docs/reference/fidelity.md).`;
}
