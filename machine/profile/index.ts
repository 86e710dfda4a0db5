export { canonicalJson } from './canonical-json.ts';
export {
  type ConfigurationChoice,
  changesOf,
  configHashOf,
  configurationOf,
  type ParameterValues,
  profileValues,
} from './configuration.ts';
export { type ParameterRow, type ProfileListing, profileListing } from './listing.ts';
export {
  isParameter,
  type MachineConfig,
  type ParameterGroup,
  type ParameterValue,
  parametersByPath,
  parameterTree,
} from './parameter-tree.ts';
export { defaultProfileName, hasCard, type Profile } from './profiles.ts';
export { checkedValue, hintFor, parsedAssignment } from './values.ts';
