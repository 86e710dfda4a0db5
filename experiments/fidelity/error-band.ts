/** The error to expect of a figure that nothing was fitted to. */
import type { MachineConfig } from '../../machine/profile/index.ts';
import { errorBands } from './error-bands.ts';

export type FigureKind = 'latency' | 'message rate' | 'bandwidth';
export type Network = 'infiniband' | 'ethernet' | 'iwarp';

/** Eight of ten measured rows have an error between `low` and `high`, relative to the measured value. */
export interface ErrorBand {
  readonly rows: number;
  readonly low: number;
  readonly high: number;
}

/** Fewer rows make no band of a verb. */
const rowsMin = 10;

/** The network of a card: bands are of one, because the costs of another are other ones. */
export const networkOf = ({ hca }: Pick<MachineConfig, 'hca'>): Network => {
  const { linkLayer, transport } = hca.capability;
  if (transport === 'iwarp') return 'iwarp';
  return linkLayer === 'ethernet' ? 'ethernet' : 'infiniband';
};

export const bandKey = (network: Network, kind: FigureKind, verb?: string): string =>
  [network, ...(verb === undefined ? [] : [verb]), kind].join(' ');

/** The band of a verb's figure; of all verbs if too few rows have this one; undefined if too few rows have any. */
function errorBandOf(network: Network, kind: FigureKind, verb: string): ErrorBand | undefined {
  const bands = [errorBands[bandKey(network, kind, verb)], errorBands[bandKey(network, kind)]];
  return bands.find((band) => band !== undefined && band.rows >= rowsMin);
}

const signed = (share: number): string => {
  const percent = Math.round(share * 100);
  return `${percent < 0 ? '−' : '+'}${Math.abs(percent)} %`;
};

const names: Readonly<Record<Network, string>> = {
  infiniband: 'InfiniBand',
  ethernet: 'RoCE',
  iwarp: 'iWARP',
};

/** A sentence for the reader of a figure. */
export function errorSentence(network: Network, kind: FigureKind, verb: string): string {
  const band = errorBandOf(network, kind, verb);
  if (band === undefined)
    return `Expected error: unknown; fewer than ${rowsMin} measurements of this kind over ${names[network]} test the model.`;
  const { rows, low, high } = band;
  return `Expected error of a ${kind}: ${signed(low)} to ${signed(high)}, as for eight in ten of ${rows} measurements that nothing was fitted to (docs/reference/fidelity.md).`;
}
