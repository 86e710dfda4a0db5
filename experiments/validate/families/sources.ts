/**
 * Machines of a source whose level differs from that of the profile: the sum of what its hosts, switches, firmware and
 * virtual functions add to each message, or remove from it, is seen only as one figure. Each has one value, or two, that
 * is fitted to as many rows of the source; the other rows of the source judge it.
 *
 *   row ──► machineOf: profile of the card ◄─ link, slot ◄─ sourceMachines: values of the source
 */
import type { ParameterValues } from '../../../machine/profile/index.ts';
import type { Measurement } from '../measurements.ts';

interface SourceMachine {
  /** The source, in the words of the page. */
  readonly of: string;
  readonly source: RegExp;
  /** Rows of the source that state this; all of them if left out. */
  readonly params?: RegExp;
  readonly set: ParameterValues;
  /** Rows that a value is fitted to, by its paths. */
  readonly fitted: Readonly<Record<string, string>>;
}

const passPaths = 'hca.transmitLatencyCycles, hca.receiveLatencyCycles';
/** One pass from card to card takes twice these cycles; with 60 and 75 it takes as long as on the hosts of A-001. */
const passOf = (cycles: number): ParameterValues => ({
  'hca.transmitLatencyCycles': cycles,
  'hca.receiveLatencyCycles': cycles,
});

export const sourceMachines: readonly SourceMachine[] = [
  {
    of: 'hosts of LITE',
    source: /^LITE\b/,
    set: passOf(6),
    fitted: { [passPaths]: 'F-030' },
  },
  {
    of: 'hosts of Performance Isolation Anomalies',
    source: /^Performance Isolation/,
    set: passOf(14),
    fitted: { [passPaths]: 'G-038, G-039' },
  },
  {
    of: 'hosts of the transcript of 5 Nov 2014',
    source: /^perftest transcript of 5 Nov 2014/,
    set: passOf(117),
    fitted: { [passPaths]: 'B-022' },
  },
  {
    of: 'virtual machines of Azure HC44rs',
    source: /HC44rs/,
    set: passOf(322),
    fitted: { [passPaths]: 'T-022' },
  },
  // A virtual function takes 0.3 us longer than the host's own function of the same card for each of WRITE, SEND, READ and
  // atomics: so the cost is one of the post, not of each pass over PCIe.
  {
    of: 'virtual functions in containers of two nodes',
    source: /containers of two nodes/,
    params: /virtual functions/,
    set: { 'pcie.rootComplex.cpuStoreLatencyPs': 427_000 },
    fitted: { 'pcie.rootComplex.cpuStoreLatencyPs': 'T-115' },
  },
  {
    of: 'the ConnectX-3 Pro pair',
    source: /ConnectX-3 Pro pair/,
    set: passOf(260),
    fitted: { [passPaths]: 'T-011' },
  },
  // The source states cores of 1.2 to 2.0 GHz: the value represents what else a post costs there. Datagrams that are
  // not inlined take a read of their WQE longer than inlined ones: its containers post them by doorbells.
  {
    of: 'hosts of Kubernetes with a ConnectX-5',
    source: /Kubernetes with a ConnectX-5/,
    set: { 'host.core.clockMHz': 900, 'driver.blueFlameForAll': false },
    fitted: { 'host.core.clockMHz': 'T-074', 'driver.blueFlameForAll': 'T-099' },
  },
  {
    of: 'ARM hosts of APNet 2019',
    source: /^On the Impact of Cluster Configuration/,
    params: /^size=\d+$/,
    set: { 'host.interrupt.deliveryNs': 10_000 },
    fitted: { 'host.interrupt.deliveryNs': 'T-181' },
  },
];

/** Values of the machines of a row's source. */
export const setOfSource = (row: Partial<Pick<Measurement, 'source' | 'params'>>): ParameterValues =>
  sourceMachines.find(
    ({ source, params }) => source.test(row.source ?? '') && (params?.test(row.params ?? '') ?? true),
  )?.set ?? {};
