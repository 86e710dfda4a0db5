/** Parameters of a machine whose HCAs speak a network; packets of RoCE are bytes on the cable, as those of iWARP are. */
export const networks = {
  infiniband: {},
  'roce-v2': {
    'hca.capability.linkLayer': 'ethernet',
    'hca.capability.roce': 'v2',
    'wire.packetForm': 'bytes',
  },
  iwarp: { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp' },
} as const;

export type Network = keyof typeof networks;
