/**
 * Whether the transport of a machine has the operations of a test, before the machine is built. iWARP has RC alone, with atomics only by
 * RFC 7306, and its packets are segments of TCP: fields of IBTA's path and its headers have no meaning.
 */
import { ConfigurationError } from '../../base/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import { type FieldNaming, kindOf, type PerfArgs } from '../workloads/index.ts';

type Field = Parameters<FieldNaming>[0];

/** A field that iWARP refuses, its value, and the accepted values with the reason; no field: the test itself. */
type Refusal = readonly [field: Field | undefined, value: number | string, range: string];

type Capability = MachineConfig['hca']['capability'];

const rules: readonly ((args: PerfArgs, capability: Capability) => Refusal | false | undefined)[] = [
  (args, { iwarpExtensions }) => {
    const refusal = kindOf(args).iwarpRefusal(args, iwarpExtensions);
    return refusal && [undefined, ...refusal];
  },
  ({ connection }) =>
    connection !== undefined && [
      'connection',
      connection,
      'RC over iWARP, which has no other; hca.capability.transport=ibta has it',
    ],
  ({ mtuBytes }) =>
    mtuBytes !== 0 && [
      'mtu',
      mtuBytes,
      'left out with iWARP: segments are as long as ethernet.mtuBytes allows',
    ],
  ({ route }) =>
    route?.gidIndex !== undefined && [
      'gidIndex',
      route.gidIndex,
      'left out with iWARP: rdma_cm selects the port by its IP address',
    ],
  ({ route }) =>
    route?.trafficClass !== undefined && [
      'trafficClass',
      route.trafficClass,
      'left out with iWARP: the connections of the test have traffic class 0',
    ],
];

/**
 * @param named names of the fields in their source
 * @throws ConfigurationError for a test or a field that the transport of the machine lacks
 */
export function checkTransport(
  args: PerfArgs,
  { hca }: MachineConfig,
  named: FieldNaming = (field) => field,
): void {
  if (hca.capability.transport !== 'iwarp') return;
  for (const rule of rules) {
    const refusal = rule(args, hca.capability);
    if (refusal === undefined || refusal === false) continue;
    const [field, value, range] = refusal;
    throw new ConfigurationError(field === undefined ? 'test' : named(field), value, range);
  }
}
