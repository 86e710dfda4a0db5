/** The named profiles: each is the default profile with some parameters changed. */
import { fittedConnectx3 } from './fitted-connectx3.ts';
import type { ParameterValue } from './parameter-tree.ts';

export interface Profile {
  readonly name: string;
  readonly doc: string;
  /** Values by path; what is not named has its default. */
  readonly values: Readonly<Record<string, ParameterValue>>;
}

export const defaultProfileName = 'connectx3-qdr';

export const profiles: readonly Profile[] = [
  {
    name: defaultProfileName,
    doc: 'ConnectX-3, InfiniBand 4X QDR, PCIe Gen3 x8; hosts with 2.5 GHz cores. All defaults.',
    values: {},
  },
  {
    name: 'connectx3-qdr-fitted',
    doc: 'The same card with what published measurements show of it: costs of READs, of WQE lines and of payload, gaps between messages (docs/fidelity.md).',
    values: fittedConnectx3,
  },
  {
    name: 'connectx3-fdr-fitted',
    doc: 'The same on a 4X FDR cable (54.5 Gb/s of data).',
    values: { ...fittedConnectx3, 'wire.speed': 'FDR' },
  },
  {
    name: 'connectx3-fdr',
    doc: 'The same card on a 4X FDR cable (54.5 Gb/s of data).',
    values: { 'wire.speed': 'FDR' },
  },
  {
    name: 'connectx2-gen2',
    doc: 'The card before: PCIe Gen2 x8 under a 4X QDR cable, and its timers (measurements.csv H-195 to H-225).',
    values: {
      'pcie.link.generation': 2,
      // H-195 to H-211: 3.27 times the delays of the standard.
      'hca.rnrTimerUnitNs': 32_687,
      // H-213 to H-225: twice 4.096 us times 2^code, and at least those of code 16, one above its local CA ACK delay of 15.
      'hca.ackTimeoutUnitNs': 8192,
      'hca.ackTimeoutCodeMin': 16,
    },
  },
  {
    name: 'connectx5-gen3',
    doc: 'A ConnectX-5 in a slot that gives it PCIe Gen3 x8, as far as its interface is a ConnectX-3: the same HCA on a 4X EDR cable.',
    values: { 'wire.speed': 'EDR' },
  },
  {
    name: 'connectx3-mps512',
    doc: 'The same card on a host whose root port takes payloads of 512 bytes, tuned to read requests of 4096 bytes.',
    values: {
      'pcie.link.maxPayloadBytes': 512,
      'pcie.enumeration.maxPayloadBytes': 512,
      'pcie.enumeration.maxReadRequestBytes': 4096,
      'pcie.rootComplex.completionCombineBytes': 512,
    },
  },
  {
    name: 'gen5-x16-what-if',
    doc: 'What if the same HCA sat in a Gen5 x16 slot, at 4X EDR, with MPS 512 and MRRS 4096?',
    values: {
      'pcie.link.generation': 5,
      'pcie.link.lanes': 16,
      'pcie.link.maxPayloadBytes': 512,
      'pcie.enumeration.maxPayloadBytes': 512,
      'pcie.enumeration.maxReadRequestBytes': 4096,
      'pcie.rootComplex.completionCombineBytes': 512,
      'dma.dataPathBytes': 256,
      'wire.speed': 'EDR',
    },
  },
];
