"""Write `.zenodo.json` and `codemeta.json` from CITATION.cff: `python docs/_ext/citation.py` after a change of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]


def of_zenodo(cff: dict[str, Any]) -> dict[str, Any]:
    """Return the record that Zenodo makes of a release (its developers' page, "Representation")."""
    return {
        "title": cff["title"],
        "description": cff["abstract"],
        "upload_type": "software",
        "version": cff["version"],
        "license": cff["license"],
        "creators": [{"name": _name(one)} for one in cff["authors"]],
        "keywords": cff["keywords"],
        "references": [_reference(one) for one in cff["references"]],
    }


def of_codemeta(cff: dict[str, Any]) -> dict[str, Any]:
    """Return the description of the software in the terms of CodeMeta 3.0."""
    return {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": cff["title"].partition(":")[0],
        "description": cff["abstract"],
        "version": cff["version"],
        "license": f"https://spdx.org/licenses/{cff['license']}",
        "programmingLanguage": "Python",
        "operatingSystem": "Linux",
        "keywords": cff["keywords"],
        "author": [_author(one) for one in cff["authors"]],
        "citation": [
            {
                "@type": "ScholarlyArticle",
                "name": one["title"],
                "author": [_author(author) for author in one["authors"]],
                "datePublished": str(one["year"]),
                **({"url": one["url"]} if "url" in one else {}),
            }
            for one in cff["references"]
        ],
    }


FILES = {".zenodo.json": of_zenodo, "codemeta.json": of_codemeta}
"""File in the root of the repository -> what it holds of CITATION.cff."""


def texts() -> dict[str, str]:
    """Return the text that each file should have."""
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    return {name: json.dumps(make(cff), indent=2, ensure_ascii=False) + "\n" for name, make in FILES.items()}


def _name(author: dict[str, str]) -> str:
    return author.get("name") or f"{author['family-names']}, {author['given-names']}"


def _author(author: dict[str, str]) -> dict[str, str]:
    if "name" in author:
        return {"@type": "Organization", "name": author["name"]}
    return {"@type": "Person", "givenName": author["given-names"], "familyName": author["family-names"]}


def _reference(paper: dict[str, Any]) -> str:
    names = "; ".join(_name(one) for one in paper["authors"])
    return f"{names} ({paper['year']}). {paper['title']}." + (f" {paper['url']}" if "url" in paper else "")


if __name__ == "__main__":
    for name, text in texts().items():
        (ROOT / name).write_text(text, encoding="utf-8")
