/**
 * All parameters of the machine in one tree: each block's own table under the block's name. A path through the tree
 * (`pcie.link.lanes`, `hca.coreClockMHz`) names a parameter in profiles, on the command line and in error messages.
 */
import type { ChoiceParameter, FlagParameter, NumberParameter, Parameter } from '../../base/index.ts';
import { driverParameters } from '../../driver/index.ts';
import { hostParameters } from '../../host/index.ts';
import { dmaParameters } from '../../hw/dma/index.ts';
import {
  capabilityParameters,
  congestionParameters,
  controlParameters,
  hcaParameters,
  iwarpParameters,
} from '../../hw/hca/index.ts';
import { iommuParameters } from '../../hw/iommu/index.ts';
import { nicFunctionParameters, nicParameters } from '../../hw/nic/index.ts';
import {
  endpointPortParameters,
  enumerationParameters,
  functionParameters,
  linkParameters,
  rootComplexParameters,
  rootPortParameters,
} from '../../hw/pcie/index.ts';
import {
  ethernetSwitchParameters,
  switchCongestionParameters,
  switchParameters,
} from '../../hw/switch/index.ts';
import { systemDmaParameters } from '../../hw/system-dma/index.ts';
import { netParameters } from '../../net/index.ts';
import { messagingParameters } from '../../userlib/messaging/index.ts';
import {
  ethernetParameters,
  highWeightParameters,
  laneParameters,
  lowWeightParameters,
  slToVlParameters,
  wireParameters,
} from '../../wire/index.ts';
import { machineParameters } from './machine-parameters.ts';

export const parameterTree = {
  machine: machineParameters,
  host: hostParameters,
  pcie: {
    link: linkParameters,
    rootPort: rootPortParameters,
    endpointPort: endpointPortParameters,
    rootComplex: rootComplexParameters,
    enumeration: enumerationParameters,
    function: functionParameters,
    iommu: iommuParameters,
  },
  dma: dmaParameters,
  hca: {
    ...hcaParameters,
    control: controlParameters,
    capability: capabilityParameters,
    iwarp: iwarpParameters,
    congestion: congestionParameters,
  },
  nic: { ...nicParameters, function: nicFunctionParameters },
  systemDma: systemDmaParameters,
  wire: wireParameters,
  lanes: {
    ...laneParameters,
    slToVl: slToVlParameters,
    low: lowWeightParameters,
    high: highWeightParameters,
  },
  ethernet: ethernetParameters,
  switch: {
    ...switchParameters,
    congestion: switchCongestionParameters,
    ethernet: ethernetSwitchParameters,
  },
  net: netParameters,
  driver: driverParameters,
  messaging: messagingParameters,
} as const;

export interface ParameterGroup {
  readonly [name: string]: Parameter | ParameterGroup;
}

/** The configuration that a tree of parameters describes. */
type ConfigTree<Node> = Node extends NumberParameter
  ? number
  : Node extends ChoiceParameter<infer Choice>
    ? Choice
    : Node extends FlagParameter
      ? boolean
      : { readonly [Name in keyof Node]: ConfigTree<Node[Name]> };

/** The complete configuration of a machine: every parameter has a value. */
export type MachineConfig = ConfigTree<typeof parameterTree>;

export type ParameterValue = number | string | boolean;

/** A parameter and the path that names it. */
interface PlacedParameter {
  readonly path: string;
  readonly parameter: Parameter;
}

/** Whether a node of the tree is a parameter; a group never has a string under `kind`. */
export function isParameter(node: Parameter | ParameterGroup): node is Parameter {
  const { kind } = node;
  return typeof kind === 'string';
}

/** The parameters of a tree, in declaration order. */
function placedParametersOf(tree: ParameterGroup, prefix = ''): PlacedParameter[] {
  return Object.entries(tree).flatMap(([name, node]) =>
    isParameter(node)
      ? [{ path: prefix + name, parameter: node }]
      : placedParametersOf(node, `${prefix}${name}.`),
  );
}

/** Every parameter of the machine by its path. */
export const parametersByPath: ReadonlyMap<string, Parameter> = new Map(
  placedParametersOf(parameterTree).map(({ path, parameter }) => [path, parameter]),
);

/** The accepted values of a parameter, in words. */
export function rangeOf(parameter: Parameter): string {
  if (parameter.kind === 'flag') return 'true or false';
  if (parameter.kind === 'choice') return `one of ${parameter.choices.join(', ')}`;
  const unit = parameter.unit === '' ? '' : ` ${parameter.unit}`;
  const what = parameter.powerOfTwo === true ? 'a power of two' : 'an integer';
  return `${what} from ${parameter.min} to ${parameter.max}${unit}`;
}
