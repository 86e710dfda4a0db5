/** Output of `hca devinfo` compared with the output of a stock `ibv_devinfo -v` on this device. */
import { expect, it, vi } from 'vitest';
import { programUrl } from '../../experiments/runs/program-url.ts';
import type { DeviceQuery } from '../../experiments/workloads/device-query.ts';
import { Machine } from '../../machine/machine.ts';
import { devinfoText } from './devinfo.ts';

vi.setConfig({ testTimeout: 60_000 });

/**
 * Printed by ibv_devinfo -v (rdma-core 44) in a guest with Debian 12's kernel 6.1, mlx4_core and mlx4_ib and two CPUs,
 * for the adapter that `hca serve` provided; an arrow is a tab. Exception: port_cap_flags, where the guest's ib_cm had
 * set bit 16.
 */
const stock = `
hca_id:→mlx4_0
→transport:→→→InfiniBand (0)
→fw_ver:→→→→2.42.5000
→node_guid:→→→0002:c903:0000:0000
→sys_image_guid:→→→0002:c903:0000:0000
→vendor_id:→→→0x02c9
→vendor_part_id:→→→4099
→hw_ver:→→→→0x0
→board_id:→→→HCA_EMULATOR_4X
→phys_port_cnt:→→→1
→max_mr_size:→→→0xffffffffffffffff
→page_size_cap:→→→0xfffffe00
→max_qp:→→→→163768
→max_qp_wr:→→→16351
→device_cap_flags:→→0x05321c26
→→→→→BAD_PKEY_CNTR
→→→→→BAD_QKEY_CNTR
→→→→→CHANGE_PHY_PORT
→→→→→PORT_ACTIVE_EVENT
→→→→→SYS_IMAGE_GUID
→→→→→RC_RNR_NAK_GEN
→→→→→MEM_WINDOW
→→→→→XRC
→→→→→MEM_MGT_EXTENSIONS
→→→→→MEM_WINDOW_TYPE_2B
→→→→→RAW_IP_CSUM
→max_sge:→→→32
→max_sge_rd:→→→30
→max_cq:→→→→65408
→max_cqe:→→→4194303
→max_mr:→→→→524032
→max_pd:→→→→32764
→max_qp_rd_atom:→→→16
→max_ee_rd_atom:→→→0
→max_res_rd_atom:→→2620288
→max_qp_init_rd_atom:→→128
→max_ee_init_rd_atom:→→0
→atomic_cap:→→→ATOMIC_HCA (1)
→max_ee:→→→→0
→max_rdd:→→→0
→max_mw:→→→→0
→max_raw_ipv6_qp:→→0
→max_raw_ethy_qp:→→0
→max_mcast_grp:→→→8192
→max_mcast_qp_attach:→→248
→max_total_mcast_qp_attach:→2031616
→max_ah:→→→→2147483647
→max_fmr:→→→0
→max_srq:→→→65472
→max_srq_wr:→→→16383
→max_srq_sge:→→→31
→max_pkeys:→→→128
→local_ca_ack_delay:→→15
→general_odp_caps:
→rc_odp_caps:
→→→→→NO SUPPORT
→uc_odp_caps:
→→→→→NO SUPPORT
→ud_odp_caps:
→→→→→NO SUPPORT
→xrc_odp_caps:
→→→→→NO SUPPORT
→completion timestamp_mask:→→→0x0000ffffffffffff
→hca_core_clock:→→→427000kHZ
→device_cap_flags_ex:→→0x5321C26
→tso_caps:
→→max_tso:→→→0
→rss_caps:
→→max_rwq_indirection_tables:→→→0
→→max_rwq_indirection_table_size:→→→0
→→rx_hash_function:→→→→0x0
→→rx_hash_fields_mask:→→→→0x0
→max_wq_type_rq:→→→0
→packet_pacing_caps:
→→qp_rate_limit_min:→0kbps
→→qp_rate_limit_max:→0kbps
→tag matching not supported

→cq moderation caps:
→→max_cq_count:→65535
→→max_cq_period:→65535 us

→num_comp_vectors:→→2
→→port:→1
→→→state:→→→PORT_ACTIVE (4)
→→→max_mtu:→→4096 (5)
→→→active_mtu:→→4096 (5)
→→→sm_lid:→→→49151
→→→port_lid:→→1
→→→port_lmc:→→0x00
→→→link_layer:→→InfiniBand
→→→max_msg_sz:→→0x40000000
→→→port_cap_flags:→→0x00000848
→→→port_cap_flags2:→0x0000
→→→max_vl_num:→→8 (4)
→→→bad_pkey_cntr:→→0x0
→→→qkey_viol_cntr:→→0x0
→→→sm_sl:→→→0
→→→pkey_tbl_len:→→128
→→→gid_tbl_len:→→128
→→→subnet_timeout:→→18
→→→init_type_reply:→0
→→→active_width:→→4X (2)
→→→active_speed:→→10.0 Gbps (4)
→→→phys_state:→→LINK_UP (5)
→→→GID[  0]:→→fe80:0000:0000:0000:0002:c903:0000:0001
`;

it('prints what ibv_devinfo -v prints in a guest, line by line', async () => {
  await using machine = await Machine.create({
    set: { 'driver.logMcgs': 13, 'driver.completionVectorsMax': 2 },
  });
  const run = { url: programUrl('device-query'), exportName: 'queryFirstDevice' };
  await machine.load({ node: 0, name: 'devinfo', run });
  await machine.run();
  const [query] = await machine.results<[DeviceQuery]>();
  expect(devinfoText(query).replaceAll('\t', '→').split('\n')).toEqual(stock.trim().split('\n'));
});

it('prints the GIDs of an Ethernet port as ibv_devinfo does: those of version 2 as addresses', async () => {
  await using machine = await Machine.create({
    set: { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' },
  });
  const run = { url: programUrl('device-query'), exportName: 'queryFirstDevice' };
  await machine.load({ node: 0, name: 'devinfo', run });
  await machine.run();
  const [query] = await machine.results<[DeviceQuery]>();
  const lines = devinfoText(query).split('\n');
  expect(lines).toContain('\t\t\tlink_layer:\t\tEthernet');
  // print_formated_gid of rdma-core 44; RFC 5952 for the compressed form.
  expect(lines.slice(-4).map((line) => line.trim())).toEqual([
    'GID[  0]:\t\tfe80:0000:0000:0000:0202:c9ff:fe00:0001, RoCE v1',
    'GID[  1]:\t\tfe80::202:c9ff:fe00:1, RoCE v2',
    'GID[  2]:\t\t0000:0000:0000:0000:0000:ffff:0a00:0001, RoCE v1',
    'GID[  3]:\t\t::ffff:10.0.0.1, RoCE v2',
  ]);
});

/**
 * rdma-core 44, libibverbs/examples/devinfo.c: transport_str, vl_str, and the kind of a GID of a port of Ethernet; Linux, cxgb4's provider.c:
 * c4iw_query_device and c4iw_query_port zero what they do not set.
 */
const ofIwarp = [
  '→transport:→→→iWARP (1)',
  '→atomic_cap:→→→ATOMIC_NONE (0)',
  '→max_mcast_grp:→→→0',
  '→max_mcast_qp_attach:→→0',
  '→max_total_mcast_qp_attach:→0',
  '→max_ah:→→→→0',
  '→max_pkeys:→→→0',
  '→local_ca_ack_delay:→→0',
  '→→→port_lid:→→0',
  '→→→link_layer:→→Ethernet',
  '→→→max_msg_sz:→→0xffffffff',
  '→→→port_cap_flags:→→0x00af0000',
  '→→→max_vl_num:→→invalid value (0)',
  '→→→gid_tbl_len:→→1',
  '→→→GID[  0]:→→0002:c900:0001:0000:0000:0000:0000:0000, RoCE v1',
];

it('prints an RNIC as ibv_devinfo does: transport iWARP, and zero for what only IBTA has', async () => {
  await using machine = await Machine.create({
    set: { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp' },
  });
  const run = { url: programUrl('device-query'), exportName: 'queryFirstDevice' };
  await machine.load({ node: 0, name: 'devinfo', run });
  await machine.run();
  const [query] = await machine.results<[DeviceQuery]>();
  const lines = devinfoText(query).replaceAll('\t', '→').split('\n');
  expect(lines.filter((line) => ofIwarp.includes(line))).toEqual(ofIwarp);
  expect(lines).not.toContain('→→→→→RC_RNR_NAK_GEN');
  expect(lines).not.toContain('→→→→→XRC');
});
