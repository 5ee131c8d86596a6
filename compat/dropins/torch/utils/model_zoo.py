"""torch.utils.model_zoo: torch.hub's loading under its older names."""

from torch.hub import load_state_dict_from_url

load_url = load_state_dict_from_url
