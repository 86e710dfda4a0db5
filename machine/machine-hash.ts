/** The configuration that a machine's options describe, and its hash: equal exactly if parameters, seed, faults and topology are equal. */
import { ConfigurationError, shortJson } from '../base/index.ts';
import { checkedFaults, faultText } from './faults/index.ts';
import type { MachineOptions } from './machine.ts';
import { configHashOf, configurationOf, type MachineConfig, type ParameterValue } from './profile/index.ts';
import {
  checkedTopology,
  declaredOf,
  hostsOf,
  isSwitch,
  isSwitched,
  type LinkCable,
  pairsOf,
  portCountOf,
  portsOf,
  portText,
  type Topology,
} from './topology/index.ts';

/** The machine that the options describe: every parameter, the hosts and their cables. */
export interface ConfiguredMachine {
  readonly config: MachineConfig;
  readonly topology: Topology;
}

/**
 * Every parameter, including the seed and the number of hosts, and the topology, which is the default one if the
 * options declare none.
 * @throws ConfigurationError naming field, value and range
 */
export function configuredOf({ profile, set, seed, nodes, topology }: MachineOptions): ConfiguredMachine {
  const declared = topology === undefined ? undefined : checkedTopology(topology);
  const values: Record<string, ParameterValue> = { ...set };
  if (seed !== undefined) values['machine.seed'] = seed;
  if (nodes !== undefined) values['machine.nodeCount'] = nodes;
  if (declared !== undefined) {
    values['machine.nodeCount'] = hostCountOf(declared, values['machine.nodeCount']);
    if (portCountOf(declared) > 1) values['hca.capability.portCount'] ??= portCountOf(declared);
  }
  const config = configurationOf({
    ...(profile === undefined ? {} : { profile }),
    set: values,
    isPaired: declared === undefined,
  });
  if (declared === undefined) return { config, topology: pairsOf(config.machine.nodeCount) };
  checkSecondPorts(declared, config);
  checkCables(declared, config);
  checkPartitions(declared, config);
  return { config, topology: declared };
}

/** @throws ConfigurationError for links of a second port that the adapters do not have */
function checkSecondPorts(topology: Topology, { machine, hca }: MachineConfig): void {
  const needed = portCountOf(topology);
  if (needed === 1) return;
  const where = `where the topology has a link at port ${needed}`;
  if (machine.adapter !== 'hca')
    throw new ConfigurationError('machine.adapter', machine.adapter, `hca ${where}: a NIC has one port`);
  const { linkLayer, portCount } = hca.capability;
  if (linkLayer !== 'infiniband')
    throw new ConfigurationError(
      'hca.capability.linkLayer',
      linkLayer,
      `infiniband ${where}: on Ethernet only port 1 has a data path`,
    );
  if (portCount < needed)
    throw new ConfigurationError('hca.capability.portCount', portCount, `${needed} ${where}`);
}

/**
 * @throws ConfigurationError for a cable with a rate of the other link layer, for any rate between NICs, and for limits
 * of switches where neither end is a switch
 */
function checkCables(topology: Topology, { machine, hca }: MachineConfig): void {
  const { links } = topology;
  const withoutSwitch = links.filter(({ ends }) => !ends.some(({ node }) => isSwitch(topology, node)));
  refuseFields(withoutSwitch, limitFields, 'left out where no end is a switch');
  const isNic = machine.adapter === 'nic';
  if (!isNic && hca.capability.linkLayer === 'infiniband')
    return refuseFields(
      links,
      ['gigabitsPerSecond'],
      'left out on InfiniBand: fields speed and lanes are its rate',
    );
  const where = isNic ? 'machine.adapter=nic' : 'hca.capability.linkLayer=ethernet';
  refuseFields(
    links,
    ['speed', 'lanes'],
    `left out with ${where}: field gigabitsPerSecond is the rate of Ethernet`,
  );
  refuseFields(links, limitFields, `left out with ${where}: only switches of InfiniBand have it`);
  if (isNic) refuseFields(links, ['gigabitsPerSecond'], `left out with ${where}`);
}

/** @throws ConfigurationError for a cable with one of these fields */
function refuseFields(links: Topology['links'], fields: readonly (keyof LinkCable)[], range: string): void {
  for (const { ends, ...cable } of links)
    for (const field of fields)
      if (cable[field] !== undefined)
        throw new ConfigurationError(
          `topology, link ${ends.map(portText).join('-')}, field ${field},`,
          cable[field],
          range,
        );
}

const limitFields = ['hoqLife', 'vlStallCount'] as const;

/** @throws ConfigurationError for partitions that no switch would enforce */
function checkPartitions(topology: Topology, { machine, hca }: MachineConfig): void {
  const isInfiniband = machine.adapter !== 'nic' && hca.capability.linkLayer === 'infiniband';
  for (const [host, { partitions }] of topology.nodes.entries()) {
    if (partitions === undefined) continue;
    const place = `topology, nodes[${host}], field partitions,`;
    const refuse = (why: string): never => {
      throw new ConfigurationError(place, shortJson(partitions), `left out ${why}`);
    };
    if (!isInfiniband) refuse('without InfiniBand');
    if (!hca.control.embeddedSubnetManager)
      refuse('with hca.control.embeddedSubnetManager=false: the subnet manager of the fabric sets P_Keys');
    if (!portsOf(topology, host).some((port) => isSwitched(topology, port)))
      refuse(`where no switch is cabled to host ${host}`);
  }
}

/** @throws ConfigurationError if the given number of hosts contradicts the topology */
function hostCountOf(topology: Topology, given: ParameterValue | undefined): number {
  const count = hostsOf(topology).length;
  if (given === undefined || given === count) return count;
  throw new ConfigurationError('machine.nodeCount', given, `${count}, the hosts of the topology`);
}

/** Every parameter, including the seed, each fault as an option, and the topology if it is not the default. */
export function effectiveOf(options: MachineOptions): {
  readonly config: MachineConfig;
  readonly faults: readonly string[];
  readonly topology: Topology | undefined;
} {
  const { config, topology } = configuredOf(options);
  const { machine, hca } = config;
  const { transport } = hca.capability;
  const faults = checkedFaults(options.faults ?? [], machine.nodeCount, topology, transport).map(faultText);
  return { config, faults, topology: declaredOf(topology) };
}

/** Hash of the effective configuration of these options: parameters, seed, faults, and topology. */
export function machineHashOf(options: MachineOptions): string {
  const { config, faults, topology } = effectiveOf(options);
  return configHashOf(config, faults, topology);
}
