/**
 * Layouts of a command's input and output mailbox, and the object that its input modifier names. Source: interface
 * sheet 3.4 to 3.19; the layouts are those of abi/.
 */
import {
  accessReg,
  type CommandName,
  configDev,
  cqc,
  diagnosticReport,
  eqc,
  extendedPortInfo,
  guidInfo,
  initHca,
  iwarpContext,
  iwarpOffsetInQpc,
  MadClass,
  mad,
  mapEntry,
  mapEntryCountMax,
  mcgEntry,
  mgidHash,
  modStatCfg,
  mpt,
  nodeDescription,
  nodeInfo,
  pkeyTable,
  portInfo,
  qpcOffsetInMailbox,
  qpMailbox,
  queryAdapter,
  queryDevCap,
  queryFunc,
  queryFw,
  queryIfStat,
  queryPort,
  rssContext,
  rssOffsetInQpc,
  SetPortEthernet,
  SetPortForm,
  SmpAttribute,
  setNode,
  setPortBeacon,
  setPortGeneral,
  setPortGidTable,
  setPortInfiniband,
  setPortMacTable,
  setPortPriorityToClass,
  setPortReceiveQps,
  setPortRoceAddresses,
  setPortVlanTable,
  setPortVxlan,
  slToVlTable,
  smp,
  smpDataOffset,
  srqc,
  updateQpMailbox,
  writeMttHeader,
} from '../abi/index.ts';
import { mask24, viewOf } from '../base/index.ts';
import { type AnyLayout, anyLayout, type PlacedLayout } from './layout-fields.ts';
import type { ObjectNumbers } from './trace-event.ts';

/** A part of a mailbox; parts may overlap. */
export interface BoxPart extends PlacedLayout {
  readonly title: string;
}

/** Fields that select the layout of a mailbox in addition to the opcode. */
export interface CommandForm {
  readonly name: CommandName;
  readonly inputModifier: number;
  readonly opcodeModifier: number;
}

const one = (layout: AnyLayout, title = ''): BoxPart[] => [
  { title: title || layout.name, layout, offset: 0 },
];

type BoxRule = AnyLayout | ((form: CommandForm, box: Uint8Array) => BoxPart[]);

const setPortEthernetBoxes: { readonly [form: number]: AnyLayout } = {
  [SetPortEthernet.GENERAL]: anyLayout(setPortGeneral),
  [SetPortEthernet.RQP_CALC]: anyLayout(setPortReceiveQps),
  [SetPortEthernet.MAC_TABLE]: anyLayout(setPortMacTable),
  [SetPortEthernet.VLAN_TABLE]: anyLayout(setPortVlanTable),
  [SetPortEthernet.GID_TABLE]: anyLayout(setPortGidTable),
  [SetPortEthernet.PRIO2TC]: anyLayout(setPortPriorityToClass),
  [SetPortEthernet.VXLAN]: anyLayout(setPortVxlan),
  [SetPortEthernet.ROCE_ADDR]: anyLayout(setPortRoceAddresses),
};

function setPortBox({ opcodeModifier, inputModifier }: CommandForm): BoxPart[] {
  if (opcodeModifier === SetPortForm.INFINIBAND) return one(anyLayout(setPortInfiniband));
  if (opcodeModifier === SetPortForm.BEACON) return one(anyLayout(setPortBeacon));
  const layout = setPortEthernetBoxes[(inputModifier >>> 8) & 0xff];
  return layout === undefined ? [] : one(layout);
}

/** Entries of a memory donation. */
const mapEntries = ({ inputModifier }: CommandForm): BoxPart[] =>
  Array.from({ length: Math.min(inputModifier, mapEntryCountMax) }, (_, index) => ({
    title: `chunk ${index}`,
    layout: anyLayout(mapEntry),
    offset: index * mapEntry.sizeBytes,
  }));

const whenModifier =
  (layout: AnyLayout, ...modifiers: readonly number[]): BoxRule =>
  ({ opcodeModifier }) =>
    modifiers.includes(opcodeModifier) ? one(layout) : [];

/** The ring table of an indirection QP, which replaces the end of the primary path and the alternate path. */
const ringTable: BoxPart = {
  title: 'RSS context',
  layout: anyLayout(rssContext),
  offset: qpcOffsetInMailbox + rssOffsetInQpc,
};

const qpBox: BoxRule = (_, box) => {
  const isIndirect =
    box.length >= qpMailbox.sizeBytes &&
    qpMailbox.fields.context.fields.isRssIndirection.get(viewOf(box), 0) === 1;
  const parts = one(anyLayout(qpMailbox));
  return isIndirect ? [...parts, ringTable] : parts;
};

const inBoxes: { readonly [Name in CommandName]?: BoxRule } = {
  INIT_HCA: anyLayout(initHca),
  SET_PORT: setPortBox,
  SW2HW_MPT: anyLayout(mpt),
  WRITE_MTT: anyLayout(writeMttHeader),
  SW2HW_EQ: anyLayout(eqc),
  SW2HW_CQ: anyLayout(cqc),
  MODIFY_CQ: anyLayout(cqc),
  RST2INIT_QP: qpBox,
  INIT2INIT_QP: qpBox,
  INIT2RTR_QP: qpBox,
  RTR2RTS_QP: qpBox,
  RTS2RTS_QP: qpBox,
  SQERR2RTS_QP: qpBox,
  SQD2SQD_QP: qpBox,
  SQD2RTS_QP: qpBox,
  MAD_IFC: anyLayout(mad),
  WRITE_MCG: anyLayout(mcgEntry),
  MGID_HASH: anyLayout(mgidHash),
  MOD_STAT_CFG: whenModifier(anyLayout(modStatCfg), 0, 1),
  SW2HW_SRQ: anyLayout(srqc),
  CONFIG_DEV: whenModifier(anyLayout(configDev), 0),
  ACCESS_REG: anyLayout(accessReg),
  SET_NODE: anyLayout(setNode),
  UPDATE_QP: anyLayout(updateQpMailbox),
  MAP_ICM: mapEntries,
  MAP_ICM_AUX: mapEntries,
  MAP_FA: mapEntries,
};

const outBoxes: { readonly [Name in CommandName]?: BoxRule } = {
  QUERY_DEV_CAP: anyLayout(queryDevCap),
  QUERY_FW: anyLayout(queryFw),
  QUERY_ADAPTER: anyLayout(queryAdapter),
  QUERY_HCA: anyLayout(initHca),
  QUERY_MPT: anyLayout(mpt),
  HW2SW_MPT: whenModifier(anyLayout(mpt), 0),
  QUERY_EQ: anyLayout(eqc),
  HW2SW_EQ: whenModifier(anyLayout(eqc), 0),
  QUERY_CQ: anyLayout(cqc),
  HW2SW_CQ: whenModifier(anyLayout(cqc), 0),
  QUERY_QP: qpBox,
  MAD_IFC: anyLayout(mad),
  READ_MCG: anyLayout(mcgEntry),
  DIAG_RPRT: anyLayout(diagnosticReport),
  MOD_STAT_CFG: whenModifier(anyLayout(modStatCfg), 2),
  QUERY_SRQ: anyLayout(srqc),
  HW2SW_SRQ: whenModifier(anyLayout(srqc), 0),
  CONFIG_DEV: whenModifier(anyLayout(configDev), 1),
  ACCESS_REG: anyLayout(accessReg),
  QUERY_PORT: anyLayout(queryPort),
  QUERY_IF_STAT: anyLayout(queryIfStat),
  QUERY_FUNC: anyLayout(queryFunc),
};

const partsOf = (rule: BoxRule | undefined, form: CommandForm, box: Uint8Array): BoxPart[] => {
  if (rule === undefined) return [];
  return typeof rule === 'function' ? rule(form, box) : one(rule);
};

/** With iWARP, the stream of a QP replaces its alternate path. */
const streamOfQp: BoxPart = {
  title: 'stream',
  layout: anyLayout(iwarpContext),
  offset: qpcOffsetInMailbox + iwarpOffsetInQpc,
};
const namesConnection: ReadonlySet<CommandName> = new Set(['INIT2RTR_QP', 'RTR2RTS_QP']);

/**
 * Returns the parts of the mailbox that the driver filled; empty if the command has none or its layout is unknown.
 * @param hasConnections the card keeps TCP connections
 */
export const inBoxOf = (form: CommandForm, box: Uint8Array, hasConnections: boolean): BoxPart[] => {
  const parts = partsOf(inBoxes[form.name], form, box);
  return hasConnections && namesConnection.has(form.name) ? [...parts, streamOfQp] : parts;
};

/** Returns the parts of the mailbox that the device filled. */
export const outBoxOf = (form: CommandForm, box: Uint8Array): BoxPart[] =>
  partsOf(outBoxes[form.name], form, box);

const attributeLayouts: { readonly [attribute: number]: AnyLayout } = {
  [SmpAttribute.NODE_DESC]: anyLayout(nodeDescription),
  [SmpAttribute.NODE_INFO]: anyLayout(nodeInfo),
  [SmpAttribute.GUID_INFO]: anyLayout(guidInfo),
  [SmpAttribute.PORT_INFO]: anyLayout(portInfo),
  [SmpAttribute.PKEY_TABLE]: anyLayout(pkeyTable),
  [SmpAttribute.SL_TO_VL_TABLE]: anyLayout(slToVlTable),
  [SmpAttribute.MLX_EXTENDED_PORT_INFO]: anyLayout(extendedPortInfo),
};

/** The parts of a MAD, selected by its header. */
export function madPartsOf(box: Uint8Array): BoxPart[] {
  const { managementClass, attributeId } = mad.decode(box);
  const isSubnet =
    managementClass === MadClass.SUBN_LID_ROUTED || managementClass === MadClass.SUBN_DIRECTED_ROUTE;
  if (!isSubnet) return one(anyLayout(mad));
  const parts = one(withoutData, 'SMP');
  const attribute = attributeLayouts[attributeId];
  return attribute === undefined
    ? one(anyLayout(smp), 'SMP')
    : [...parts, { title: attribute.name, layout: attribute, offset: smpDataOffset }];
}

/** The header of an SMP; its attribute is shown separately. */
const withoutData: AnyLayout = {
  ...anyLayout(smp),
  table: Object.fromEntries(Object.entries(smp.table).filter(([name]) => name !== 'data')),
};

const objectOfCommand: { readonly [Name in CommandName]?: keyof ObjectNumbers } = {
  INIT_PORT: 'port',
  CLOSE_PORT: 'port',
  SET_PORT: 'port',
  MAD_IFC: 'port',
  QUERY_PORT: 'port',
  SW2HW_MPT: 'mpt',
  QUERY_MPT: 'mpt',
  HW2SW_MPT: 'mpt',
  MAP_EQ: 'eqn',
  SW2HW_EQ: 'eqn',
  HW2SW_EQ: 'eqn',
  QUERY_EQ: 'eqn',
  SW2HW_CQ: 'cqn',
  HW2SW_CQ: 'cqn',
  QUERY_CQ: 'cqn',
  MODIFY_CQ: 'cqn',
  SW2HW_SRQ: 'srqn',
  HW2SW_SRQ: 'srqn',
  QUERY_SRQ: 'srqn',
  ARM_SRQ: 'srqn',
};

/** Number of the object that a command addresses. */
export function objectsOf({ name, inputModifier }: CommandForm): ObjectNumbers {
  if (name.endsWith('_QP') && name !== 'CONF_SPECIAL_QP') return { qpn: inputModifier & mask24 };
  const kind = objectOfCommand[name];
  if (kind === undefined) return {};
  if (kind === 'port') return { port: inputModifier & 0xff };
  if (kind === 'eqn') return { eqn: inputModifier & 0x3ff };
  return { [kind]: inputModifier };
}
