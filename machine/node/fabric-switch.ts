/** The switch of a node: of InfiniBand or of Ethernet, as the ports of the adapters are. */
import type { MachinePlan } from '../plan.ts';
import type { FabricRoutes } from '../topology/index.ts';
import { EthernetSwitchNode } from './ethernet-switch-node.ts';
import { SwitchNode } from './switch-node.ts';

export type FabricSwitch = SwitchNode | EthernetSwitchNode;

/** @param routes of the plan's topology */
export const fabricSwitchOf = (plan: MachinePlan, node: number, routes: FabricRoutes): FabricSwitch =>
  plan.config.hca.capability.linkLayer === 'infiniband'
    ? new SwitchNode(plan, node, routes)
    : new EthernetSwitchNode(plan, node, routes);
